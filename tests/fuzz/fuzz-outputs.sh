#!/bin/sh
# SPDX-License-Identifier: MIT
# Feeds any bytes to luajit-parse-sysprof's reader, questions and outputs, under
# sanitizers: FUZZ_RUNS inputs (20000), mutated from the dumps of our encoder
# and recorded ones where LUAJIT_SYSPROF_CORPUS names some. An input that fails
# is left in the build directory as fuzz-outputs-*.
. "${top_srcdir:?run by make check}/tests/common.sh"
. "$top_srcdir/tests/fuzz/common.sh"

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
build_fuzzer "$top_srcdir/tests/fuzz/fuzz_outputs.c" "$@" $libraries -lm

for format in 0 1 2 3 4 5 6 7 8 9; do
	for dump in small hostile; do
		{
			"$top_builddir/tests/write_small_dump" $dump
			printf 'A\%03o' $format
		} >"seeds/$dump-$format"
	done
done
for seed in "${LUAJIT_SYSPROF_CORPUS:-/nonexistent}"/malformed/s-*.bin \
	"${LUAJIT_SYSPROF_CORPUS:-/nonexistent}"/sysprof/static-*.bin; do
	[ ! -e "$seed" ] || [ "$(wc -c <"$seed")" -gt 8192 ] ||
		{ cat "$seed"; printf '\0\1'; } >"seeds/${seed##*/}"
done

run_fuzzer fuzz-outputs "${FUZZ_RUNS:-20000}" -runs="${FUZZ_RUNS:-20000}" -timeout=20
