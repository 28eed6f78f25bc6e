#!/bin/sh
# SPDX-License-Identifier: MIT
# Feeds any bytes to the readers of both kinds of dump, under sanitizers:
# seconds by default, FUZZ_SECONDS for longer. A crash is kept in the build
# directory as fuzz-crash-*. Seeds are the dumps of our own encoder and, where
# LUAJIT_SYSPROF_CORPUS names some, recorded ones.
# $libraries are several words:
# shellcheck disable=SC2086
. "${top_srcdir:?run by make check}/tests/common.sh"
. "$top_srcdir/tests/fuzz/common.sh"

# What the readers are linked with, where it is there.
libraries=-lm
for library in -ldw -lelf -liberty; do
	! clang try.c -shared -o try.so $library 2>/dev/null ||
		libraries="$libraries $library"
done

set -- "$top_srcdir"/tools/memory/*.c "$top_srcdir"/lib/stream/*.c \
	"$top_srcdir"/tools/output/memory_*.c \
	"$top_srcdir"/tools/output/folded.c
for source in "$top_srcdir"/tools/profile/*.c; do
	set -- "$@" "$source"
done
build_fuzzer "$top_srcdir/tests/fuzz/fuzz_dump.c" "$@" $libraries

"$top_builddir/tests/write_small_dump" small >seeds/sysprof
"$top_builddir/tests/write_memory_dump" small >seeds/memprof
if [ -n "${LUAJIT_SYSPROF_CORPUS:-}" ]; then
	for seed in "$LUAJIT_SYSPROF_CORPUS"/malformed/*.bin \
		"$LUAJIT_SYSPROF_CORPUS"/memprof/static-*.bin \
		"$LUAJIT_SYSPROF_CORPUS"/sysprof/static-*.bin; do
		[ ! -e "$seed" ] || [ "$(wc -c <"$seed")" -gt 8192 ] ||
			cp "$seed" seeds/
	done
	chmod -R u+w seeds
fi

run_fuzzer fuzz 101 -max_total_time="${FUZZ_SECONDS:-15}" -timeout=10
