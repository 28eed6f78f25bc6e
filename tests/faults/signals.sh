#!/bin/sh
# SPDX-License-Identifier: MIT
# What the host does to the signal of the samples, its mask and its timer during a
# profile: it keeps them, and what was missed is told, by the report and by the dump.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit
program=$top_srcdir/tests/faults/signals.lua
faults=$top_builddir/tests/faults

# run CASE [COMMAND...]
run()
{
	case=$1
	shift
	if timeout 300 "$@" "$LUAJIT" "$program" \
		"$faults/.libs/host_handlers.so" "$case" >"$case.log" 2>&1; then
		echo "ok   $case"
	else
		complain "$case (exit $?): $(tail -n 5 "$case.log")"
	fi
}

# told REASON: the last dump has lost samples for it, and the parser says so.
told()
{
	"$parser" signals.bin 2>told >/dev/null
	grep -q "  $1: [0-9]" told ||
		complain "the dump does not tell of \"$1\": $(cat told)"
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
