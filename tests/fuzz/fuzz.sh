#!/bin/sh
# SPDX-License-Identifier: MIT
# Feeds any bytes to the readers of both kinds of dump, under sanitizers:
# seconds by default, FUZZ_SECONDS for longer. A crash is kept in the build
# directory as fuzz-crash-*. Seeds are the dumps of our own encoder and, where
# LUAJIT_SYSPROF_CORPUS names some, recorded ones.
# $libraries are several words:
# shellcheck disable=SC2086
set -eu

: "${top_srcdir:?run by make check}" "${top_builddir:?}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo 'int LLVMFuzzerTestOneInput(const char *b, unsigned long n);
int LLVMFuzzerTestOneInput(const char *b, unsigned long n)
{ return n > 0 && b[0] == 0x7f ? 0 : 0; }' >"$work/try.c"
if ! clang -fsanitize=fuzzer,address,undefined "$work/try.c" -o "$work/try" \
	2>/dev/null; then
	echo "SKIP: no clang with libFuzzer (Debian: clang libclang-rt-14-dev)"
	exit 77
fi

# What the readers are linked with, where it is there.
libraries=-lm
for library in -ldw -lelf -liberty; do
	! clang "$work/try.c" -shared -o "$work/try.so" $library 2>/dev/null ||
		libraries="$libraries $library"
done

set -- "$top_srcdir"/tools/memory/*.c "$top_srcdir"/lib/stream/*.c \
	"$top_srcdir"/tools/output/memory_*.c \
	"$top_srcdir"/tools/output/folded.c
for source in "$top_srcdir"/tools/profile/*.c; do
	set -- "$@" "$source"
done
clang -std=gnu11 -g -O1 -D_GNU_SOURCE -fno-sanitize-recover=all \
	-fsanitize=fuzzer,address,undefined -I"$top_srcdir/lib" \
	-I"$top_srcdir" -I"$top_srcdir/tools" "$top_srcdir/tests/fuzz/fuzz_dump.c" \
	-I"$top_builddir" "$@" $libraries -o "$work/fuzz_dump"

mkdir "$work/seeds" "$work/found"
"$top_builddir/tests/write_small_dump" small >"$work/seeds/sysprof"
"$top_builddir/tests/write_memory_dump" small >"$work/seeds/memprof"
if [ -n "${LUAJIT_SYSPROF_CORPUS:-}" ]; then
	for seed in "$LUAJIT_SYSPROF_CORPUS"/malformed/*.bin \
		"$LUAJIT_SYSPROF_CORPUS"/memprof/static-*.bin \
		"$LUAJIT_SYSPROF_CORPUS"/sysprof/static-*.bin; do
		[ ! -e "$seed" ] || [ "$(wc -c <"$seed")" -gt 8192 ] ||
			cp "$seed" "$work/seeds/"
	done
	chmod -R u+w "$work/seeds"
fi

# Memory stays far below what the lengths in a dump may promise.
"$work/fuzz_dump" -max_total_time="${FUZZ_SECONDS:-15}" -max_len=8192 \
	-rss_limit_mb=1024 -malloc_limit_mb=256 -timeout=10 \
	-artifact_prefix="$top_builddir/fuzz-" -print_final_stats=1 \
	"$work/found" "$work/seeds" >"$work/log" 2>&1 || {
	tail -n 60 "$work/log"
	exit 1
}
grep 'stat::number_of_executed_units\|stat::peak_rss' "$work/log"
runs=$(awk '/number_of_executed_units/ { print $2 }' "$work/log")
[ "$runs" -gt 100 ]
