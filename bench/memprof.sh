#!/bin/sh
# SPDX-License-Identifier: MIT
# What a memory profile costs, and how fast it is read:
#
#   bench/memprof.sh BUILD-DIRECTORY [RUNS]
#
# Needs `make check TESTS=` in the build directory, GNU time (Debian package:
# time), and 500 MB in $TMPDIR. Each time is the least of the runs, which other
# load on the machine disturbs least.
set -eu

build=${1:?usage: memprof.sh BUILD-DIRECTORY [RUNS]}
runs=${2:-5}
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$build" && pwd)
parse=$build/tools/luajit-parse-memprof
LUA_CPATH="$build/lib/.libs/?.so;;"
export LUA_CPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# events DUMP
events()
{
	"$parse" "$1" 2>/dev/null |
		awk '/ in all$/ && NF >= 5 { sum += $1 } END { print sum }'
}

# least JIT OPTIONS: least CPU time and least time by the clock.
least()
{
	i=0
	while [ $i -lt "$runs" ]; do
		luajit "-j$1" "$here/allocations.lua" "$2"
		i=$((i + 1))
	done | awk 'NR == 1 || $1 < cpu { cpu = $1 }
		NR == 1 || $2 < wall { wall = $2 }
		END { print cpu, wall }'
}

echo "recording, least of $runs runs; ns an event: more CPU time of the VM's thread"
printf '%-4s %-22s %8s %8s %10s %9s %9s %8s\n' JIT profile 'CPU s' 'wall s' \
	events 'ns/event' 'B/event' lost
for jit in on off; do
	least $jit off >before
	printf '%-4s %-22s %8.3f %8.3f\n' $jit off "$(cut -d" " -f1 before)" \
		"$(cut -d' ' -f2 before)"
	for profile in 'full:' 'sampled 512 KiB:sample_bytes = 524288' \
		'the same with stacks:sample_bytes = 524288, stacks = true' \
		'sampled 16 KiB, stacks:sample_bytes = 16384, stacks = true'; do
		least $jit "{ path = 'dump', ${profile#*:} }" >on
		"$parse" dump 2>err >/dev/null || :
		[ "${profile%%:*}" != full ] || all=$(events dump)
		recorded=$(strings -n 1 err | awk '/estimates from/ { print $4 }')
		awk -v jit=$jit -v profile="${profile%%:*}" -v all="$all" \
			-v recorded="${recorded:-$all}" -v bytes="$(wc -c <dump)" \
			-v off="$(cat before)" -v lost="$(sed -n \
				's/.* lost \([0-9]*\) of.*/\1/p' err)" '{
			split(off, before)
			printf "%-4s %-22s %8.3f %8.3f %10d %9.1f %9.1f %8d\n",
				jit, profile, $1, $2, recorded,
				($1 - before[1]) * 1e9 / all,
				bytes / recorded, lost }' on
	done
done

echo
echo "reading, 200 MB, 1000 blocks alive"
"$build/tests/write_memory_dump" large 200 >events.bin
cat events.bin >/dev/null # into the page cache, so that no disk is measured
printf '%-22s %9s %9s %12s\n' output seconds MB/s 'resident MB'
for options in '--leak-only' '--format=tables' '--compat' '--format=folded'; do
	/usr/bin/time -o time -f '%e %M' "$parse" "$options" events.bin >out 2>/dev/null
	awk -v options="$options" -v bytes="$(wc -c <events.bin)" \
		'{ printf "%-22s %9.2f %9.0f %12.1f\n", options, $1,
			bytes / 1e6 / ($1 > 0 ? $1 : 0.01), $2 / 1024 }' time
done
