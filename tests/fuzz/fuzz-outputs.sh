#!/bin/sh
# SPDX-License-Identifier: MIT
# Feeds any bytes to luajit-parse-sysprof's reader, questions and outputs, under
# sanitizers: FUZZ_RUNS inputs (20000), mutated from the dumps of our encoder
# and recorded ones where LUAJIT_SYSPROF_CORPUS names some. An input that fails
# is left in the build directory as fuzz-outputs-*.
set -eu

: "${top_srcdir:?run by make check}" "${top_builddir:?}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo 'int LLVMFuzzerTestOneInput(const char *b, unsigned long n);
int LLVMFuzzerTestOneInput(const char *b, unsigned long n)
{ return n > 9 && b[0] == 9 ? 0 : 0; }' >"$work/try.c"
if ! clang -fsanitize=fuzzer,address,undefined "$work/try.c" -o "$work/try" \
	2>/dev/null; then
	echo "SKIP: no clang with libFuzzer (Debian: clang libclang-rt-14-dev)"
	exit 77
fi

# make_variable NAME: its value in the build directory.
make_variable()
{
	sed -n "s/^$1 = //p" "$top_builddir/Makefile"
}

libraries="$(make_variable LIBDW_LIBS) $(make_variable LIBELF_LIBS) \
	$(make_variable LIBIBERTY_LIBS)"
set -- "$top_srcdir"/tools/profile/*.c "$top_srcdir"/lib/stream/*.c \
	"$top_builddir/tools/output/html_page.c"
for source in "$top_srcdir"/tools/output/*.c; do
	case $source in
	*/memory_*) continue ;;
	*/pprof.c)
		grep -q 'define HAVE_PPROF' "$top_builddir/config.h" || continue
		libraries="$libraries $(make_variable PPROF_LIBS)"
		set -- "$@" "$top_builddir/tools/output/pprof.pb-c.c"
		;;
	esac
	set -- "$@" "$source"
done
# shellcheck disable=SC2086
clang -std=gnu11 -g -O1 -D_GNU_SOURCE -fno-sanitize-recover=all \
	-fsanitize=fuzzer,address,undefined -I"$top_srcdir/lib" \
	-I"$top_srcdir" -I"$top_srcdir/tools" -I"$top_builddir" \
	-I"$top_builddir/tools" "$top_srcdir/tests/fuzz/fuzz_outputs.c" "$@" \
	$libraries -lm -o "$work/fuzz_outputs"

mkdir "$work/seeds" "$work/found"
for format in 0 1 2 3 4 5 6 7 8 9; do
	for dump in small hostile; do
		{
			"$top_builddir/tests/write_small_dump" $dump
			printf 'A\%03o' $format
		} >"$work/seeds/$dump-$format"
	done
done
for seed in "${LUAJIT_SYSPROF_CORPUS:-/nonexistent}"/malformed/s-*.bin \
	"${LUAJIT_SYSPROF_CORPUS:-/nonexistent}"/sysprof/static-*.bin; do
	[ ! -e "$seed" ] || [ "$(wc -c <"$seed")" -gt 8192 ] ||
		{ cat "$seed"; printf '\0\1'; } >"$work/seeds/${seed##*/}"
done

"$work/fuzz_outputs" -runs="${FUZZ_RUNS:-20000}" -max_len=8192 \
	-rss_limit_mb=1024 -malloc_limit_mb=256 -timeout=20 \
	-artifact_prefix="$top_builddir/fuzz-outputs-" -print_final_stats=1 \
	"$work/found" "$work/seeds" >"$work/log" 2>&1 || {
	tail -n 60 "$work/log"
	exit 1
}
grep 'stat::number_of_executed_units\|stat::peak_rss' "$work/log"
runs=$(awk '/number_of_executed_units/ { print $2 }' "$work/log")
[ "$runs" -ge "${FUZZ_RUNS:-20000}" ]
