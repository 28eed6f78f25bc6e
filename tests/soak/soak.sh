#!/bin/sh
# SPDX-License-Identifier: MIT
# A profile at 10 kHz of a program in which everything moves, for SOAK_SECONDS
# (1800): it must not crash, hang or grow. Part of `make check-long`.
. "${top_srcdir:?run by make check}/tests/common.sh"
seconds=${SOAK_SECONDS:-1800}
# The LuaJIT of the system is not sanitized, but can load a library that is.
preload=
if [ "${SANITIZERS:-no}" = yes ]; then
	preload="$(cc -print-file-name=libasan.so)"
	preload="$preload $(cc -print-file-name=libubsan.so)"
	export ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0
fi
cp "$top_builddir/tests/unit/.libs/late_library.so" "$work/late.so"
timeout $((seconds + 120)) env LD_PRELOAD="$preload" "$LUAJIT" "$top_srcdir/tests/soak/soak.lua" \
	"$work/late.so" "$work/soak.bin" "$seconds" >"$work/log" 2>&1 ||
	{ cat "$work/log"; fail "exit status $?"; }
cat "$work/log"
"$parser" "$work/soak.bin" \
	-o "$work/soak.folded"
grown_kib=$(sed -n 's/.*, \(-\{0,1\}[0-9]*\) KiB more resident$/\1/p' \
	"$work/log")
[ "$grown_kib" -lt 65536 ] || [ -n "$preload" ] ||
	fail "grew by $grown_kib KiB"
