# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Sourced after tests/common.sh by the tests that feed any bytes: skips where there
# is no libFuzzer.
: "${top_srcdir:?}" "${top_builddir:?}"

cat >try.c <<'C'
int LLVMFuzzerTestOneInput(const char *bytes, unsigned long size);
int LLVMFuzzerTestOneInput(const char *bytes, unsigned long size)
{
	return size > 9 && bytes[0] == 9 ? 0 : 0;
}
C
clang -fsanitize=fuzzer,address,undefined try.c -o try 2>/dev/null ||
	skip "no clang with libFuzzer (Debian: clang libclang-rt-14-dev)"
mkdir seeds found

# build_fuzzer ARGUMENT...
build_fuzzer()
{
	clang -std=gnu11 -g -O1 -D_GNU_SOURCE -fno-sanitize-recover=all \
		-fsanitize=fuzzer,address,undefined -I"$top_srcdir/lib" \
		-I"$top_srcdir" -I"$top_srcdir/tools" -I"$top_builddir" \
		-I"$top_builddir/tools" "$@" -o fuzzer
}

# run_fuzzer NAME LEAST OPTION...: on the seeds, at least so many inputs. Memory
# stays far below what the lengths in a dump may promise. An input that fails is
# left in the build directory as NAME-*.
run_fuzzer()
{
	name=$1
	least=$2
	shift 2
	./fuzzer "$@" -max_len=8192 -rss_limit_mb=1024 -malloc_limit_mb=256 \
		-artifact_prefix="$top_builddir/$name-" -print_final_stats=1 \
		found seeds >log 2>&1 || { tail -n 60 log; fail "an input"; }
	grep 'stat::number_of_executed_units\|stat::peak_rss' log
	runs=$(awk '/number_of_executed_units/ { print $2 }' log)
	[ "$runs" -ge "$least" ] || fail "only $runs inputs, not $least"
}
