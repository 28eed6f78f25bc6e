# SPDX-License-Identifier: MIT
# Sourced by the tests that have real perf record without a probe, or read only. Sets
# $work, a directory of the test's own.
# shellcheck shell=sh

: "${PERF:=perf}"

skip()
{
	echo "SKIP: $1"
	exit 77
}

# shellcheck disable=SC2317 # called by the trap
remove_work()
{
	rm -rf "$work"
}

check_perf()
{
	[ "${SANITIZERS:-no}" = no ] ||
		skip "a sanitizer adds frames and cannot be loaded by luajit"
	command -v "$PERF" >/dev/null ||
		skip "perf is missing (Debian package: linux-perf)"
	work=$(mktemp -d)
	# Without the settings of the user, and without ~/.debug: perf record puts
	# objects there, and perf script reads what others have half written.
	HOME=$work
	export HOME
	trap remove_work EXIT
	trap 'exit 1' HUP INT TERM
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
