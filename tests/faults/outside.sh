#!/bin/sh
# SPDX-License-Identifier: MIT
# What the system refuses or lacks: clocks, places for files, limits, disks, pipes. A
# profile is refused by name or goes on with less, nothing crashes, and the next one
# starts.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit
program=$top_srcdir/tests/faults/outside.lua
deny=$top_builddir/tests/faults/deny
chmod 777 .

# A case that this machine cannot have is told; if none ran, all is skipped.
ran=0
left_out=

run()
{
	case=$1
	shift
	if timeout 120 "$@" "$LUAJIT" "$program" "$case" >"$case.log" 2>&1; then
		ran=$((ran + 1))
		echo "ok   $case"
	else
		complain "$case (exit $?): $(tail -n 5 "$case.log")"
	fi
}

leave_out()
{
	echo "left out $1: $2"
	left_out="$left_out $1"
}

# in_own_mounts CASE COMMANDS: as root of mounts that nobody else sees.
in_own_mounts()
{
	case=$1
	if unshare -m sh -c "$2" 2>/dev/null; then
		run "$case" unshare -m sh -c "$2"' && exec "$@"' sh
	else
		leave_out "$case" "no mounts of its own: that needs root"
	fi
}

if "$deny" perf_event_open true 2>/dev/null; then
	run no_perf "$deny" perf_event_open
	run no_thread_timer "$deny" perf_event_open,timer_create
	run no_clock "$deny" perf_event_open,timer_create,setitimer,getitimer
	run signals_without_perf "$deny" perf_event_open
else
	leave_out "no_perf no_thread_timer no_clock signals_without_perf" "no seccomp"
fi

# This directory stays as it is.
# shellcheck disable=SC2016
in_own_mounts no_tmp 'mount --bind "$PWD" "$PWD" && mount --rbind /tmp /tmp &&
	mount -o remount,bind,ro /tmp && cd "$PWD"'
in_own_mounts read_only 'mount -o remount,bind,ro /'
in_own_mounts no_proc 'mount --make-rprivate /'
mkdir disk
in_own_mounts disk 'mount -t tmpfs -o size=64k none disk'

run descriptors env
run memory env
run signals env
run blocked env
if [ "$(id -u)" = 0 ]; then
	run threads env
else
	leave_out threads "only root can become a user without threads"
fi

mkfifo pipe
sh -c 'exec <pipe; sleep 1' &
run pipe env
wait

[ $ran -gt 0 ] || skip "$left_out"
