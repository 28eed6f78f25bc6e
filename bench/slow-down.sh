#!/bin/sh
# SPDX-License-Identifier: MIT
# How much slower programs get by a profile in mode C, and by perf record at the
# same rate:
#
#   bench/slow-down.sh BUILD-DIRECTORY [RUNS]
#
# Needs perf and the right to record. Prints the time of the VM's thread on a CPU,
# interrupts included, against that without a profiler; each time is the least of the
# runs, taken in turns, so that other load disturbs all of them alike.
set -eu

build=${1:?usage: slow-down.sh BUILD-DIRECTORY [RUNS]}
runs=${2:-5}
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$build" && pwd)
: "${LUAJIT:=luajit}" "${PERF:=perf}"
LUA_CPATH="$build/lib/.libs/?.so;;"
export LUA_CPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# run NAME COMMAND...: keeps the least time in the file least.NAME.
run()
{
	name=$1
	shift
	"$@" >log 2>&1 || { cat log; exit 1; }
	cat seconds "least.$name" 2>/dev/null | sort -g | head -n 1 >least
	mv least "least.$name"
}

ratio()
{
	awk -v plain="$(cat least.plain)" '{ printf "%8.3f", $1 / plain }' \
		"least.$1"
}

printf '%-12s %-4s %9s %8s %8s %8s\n' program JIT interval 'mode C' 'perf -g' \
	dwarf
for program in ray_tracer json scheduler; do
	for jit in on off; do
		path=$here/../tests/programs/$program.lua
		set -- "$LUAJIT" "-j$jit" "$here/fixed_work.lua" "$path"
		rounds=$("$@" count 1)
		rm -f least.*
		i=0
		while [ $i -lt "$runs" ]; do
			run plain "$@" "$rounds"
			for interval in 10 1 0.2; do
				rate=$(awk "BEGIN { print 1000 / $interval }")
				run "ours.$interval" "$@" "$rounds" $interval
				run "g.$interval" "$PERF" record -q -o data -g \
					-e cpu-clock:u -F "$rate" "$@" "$rounds"
				run "dwarf.$interval" "$PERF" record -q -o data \
					-e cpu-clock:u -F "$rate" \
					--call-graph dwarf "$@" "$rounds"
			done
			i=$((i + 1))
		done
		for interval in 10 1 0.2; do
			printf '%-12s %-4s %6s ms %s %s %s\n' $program $jit \
				$interval "$(ratio ours.$interval)" \
				"$(ratio g.$interval)" "$(ratio dwarf.$interval)"
		done
	done
done
