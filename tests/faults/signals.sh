#!/bin/sh
# SPDX-License-Identifier: MIT
# What the host does to the signal of the samples, its mask and its timer during a
# profile: it keeps them, and what was missed is told, by the report and by the dump.
set -eu

: "${top_srcdir:?run by make check}" "${top_builddir:?}" "${LUAJIT:?}"
if [ "${SANITIZERS:-no}" = yes ]; then
	echo "SKIP: the LuaJIT of this system is not built with sanitizers"
	exit 77
fi
program=$(cd "$top_srcdir/tests/faults" && pwd)/signals.lua
faults=$(cd "$top_builddir/tests/faults" && pwd)
parser=$(cd "$top_builddir/tools" && pwd)/luajit-parse-sysprof
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=

# run CASE [COMMAND...]
run()
{
	case=$1
	shift
	if timeout 300 "$@" "$LUAJIT" "$program" \
		"$faults/.libs/host_handlers.so" "$case" >"$case.log" 2>&1; then
		echo "ok   $case"
	else
		echo "FAIL $case (exit $?): $(tail -n 5 "$case.log")"
		failed="$failed $case"
	fi
}

# told REASON: the last dump has lost samples for it, and the parser says so.
told()
{
	"$parser" signals.bin 2>told >/dev/null
	grep -q "  $1: [0-9]" told || {
		echo "FAIL: the dump does not tell of \"$1\": $(cat told)"
		failed="$failed told"
	}
}

run ignored
told "signal handler replaced"
run blocked
told "signal blocked"
run taken
run passed_on
run no_writer
run jit_p
run blocked_shortly
run child
if "$faults/deny" perf_event_open true 2>/dev/null; then
	run ignored "$faults/deny" perf_event_open
	run process_timer "$faults/deny" perf_event_open,timer_create
else
	echo "skip the timers: no seccomp"
fi
[ -z "$failed" ]
