# SPDX-License-Identifier: MIT
# Sourced after common.sh by the tests that have real perf record without a probe, or
# read only.
# shellcheck shell=sh
: "${work:?}"

check_perf()
{
	[ "${SANITIZERS:-no}" = no ] ||
		skip "a sanitizer adds frames and cannot be loaded by luajit"
	need_perf
}

check_recording()
{
	check_perf
	"$PERF" record -q -o "$work/try" -e cpu-clock:u -- true \
		>"$work/try.log" 2>&1 ||
		skip "perf may not record here (perf_event_paranoid?)"
}

# inject DATA OUTPUT: with the objects in their usual place beside the dump.
inject()
{
	"$PERF" --buildid-dir "$work/cache" inject --jit -i "$1" -o "$2" \
		>"$work/inject.log" 2>&1
}

# script_lines OUTPUT ARGUMENT...: perf script with lines, for which it asks
# addr2line. Where that ends early perf 6.1 is killed by SIGPIPE, without a word;
# without the signal it says so, and lines are missing.
script_lines()
{
	(
		trap '' PIPE
		output=$1
		shift
		exec "$PERF" script "$@" >"$output" 2>"$output.log"
	)
}
