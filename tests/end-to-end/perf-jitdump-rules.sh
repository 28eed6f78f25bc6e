#!/bin/sh
# SPDX-License-Identifier: MIT
# What perf makes of jitdumps that are not as ours: each rule that ours keep is one
# that perf trips over. One recording; the dump is changed before each perf inject.
. "${top_srcdir:?run by make check}/tests/common.sh"
. "$top_srcdir/tests/end-to-end/perf-record.sh"
check_recording
need_luajit
rules=$top_srcdir/tests/end-to-end/perf-rules
program=$top_builddir/tests/end-to-end/perf_jitdump_program
pids=

clean_up()
{
	for pid in $pids; do
		rm -f "/tmp/jit-$pid.dump" /tmp/jitted-"$pid"-*.so
	done
}

# spin DATA PERF-OPTIONS ARGUMENT...: records the program; sets pid.
spin()
{
	data=$1
	options=$2
	shift 2
	# shellcheck disable=SC2086 # options are words
	"$PERF" record -q -k mono -F 1000 -e cpu-clock:u $options \
		-o "$work/$data" "$program" "$@" >"$work/record.log" 2>&1
	pid=$("$PERF" script -i "$work/$data" --show-mmap-events \
		-F comm,pid,event,ip 2>/dev/null |
		sed -n 's|.*r-xp /.*/*jit-\([0-9]*\)\.dump$|\1|p' | head -n 1)
	pids="$pids ${pid:?perf has recorded no mapping of the jitdump}"
}

# look DATA: objects, names, samples in the code; and in percent: how many of them
# have names, how many of those have main among their callers, and what the name with
# the fewest has of its share.
look()
{
	rm -f /tmp/jitted-"$pid"-*.so
	inject "$work/$1" "$work/injected" || :
	objects=$(find /tmp -maxdepth 1 -name "jitted-$pid-*.so" | wc -l)
	"$PERF" script -i "$work/injected" -F ip,sym,dso --no-inline \
		2>"$work/script.log" | awk '
		function finish() {
			if (leaf ~ /^TRACE_/ || dso ~ /anon|jitted-/) {
				total++
				if (leaf ~ /^TRACE_/) {
					named++
					if (!seen[leaf]++) names++
					if (whole) whole_count++
				}
			}
			leaf = dso = ""
			whole = 0
		}
		/^$/ { finish(); next }
		/^[ \t]+[0-9a-f]/ {
			if (leaf == "") { leaf = $2; dso = $NF }
			if ($2 == "main") whole = 1
		}
		END {
			finish()
			for (name in seen)
				if (!least || seen[name] < least)
					least = seen[name]
			printf "%d %d %d %d %d\n", names, total,
				100 * named / (total + !total),
				100 * whole_count / (named + !named),
				100 * least * names / (named + !named)
		}
	' >"$work/look"
	read -r names total named whole least <"$work/look"
	printf '%-18s %2d objects, %2d names, %d samples, %d %% named, %d %% whole%s\n' \
		"$change" "$objects" "$names" "$total" "$named" "$whole" \
		", least share $least %"
}

# try CHANGE: as look, with the dump changed.
try()
{
	change=$1
	"$LUAJIT" "$rules/jitdump.lua" "$1" "$work/dump" "/tmp/jit-$pid.dump"
	look dwarf
}

# expect WHAT CONDITION...: as of test(1).
expect()
{
	what=$1
	shift
	[ "$@" ] || complain "$change: $what"
}

# perf's unwinder: libunwind reads rules in the mapping alone.
rules_in_file="cut"
"$PERF" version --build-options 2>/dev/null | grep -q 'libunwind: \[ on' ||
	rules_in_file=whole

spin dwarf "--call-graph dwarf,4096" /tmp apart
cp "/tmp/jit-$pid.dump" "$work/dump"

# --- order of records, and their ends -------------------------------------------

for change in closed "unknown record" same; do
	try "$change"
	expect "12 of 12 objects" "$objects" -eq 12
	expect "all have names" "$names-$named" = 12-100
	expect "whole stacks" "$whole" -ge 99
done
[ "$total" -ge 300 ] || complain "only $total samples"

# Code is found from the end of its record. As it is in the object:
code()
{
	readelf -x .text "$1" | awk '/0x/ { printf "%s", $2 $3 $4 $5 }'
}
is_code='^554883ec..4889fd48ffcd75fb'
for object in /tmp/jitted-"$pid"-*.so; do
	code "$object" | grep -q "$is_code" || complain "same: other code"
done
script_lines "$work/lines" -i "$work/injected" -F ip,srcline --no-inline
grep -q 'spin\.lua:20' "$work/lines" || complain "same: no lines"

try torn # as by a full disk, or while it is written
expect "all but the last" "$objects-$names" = 11-11
expect "whole stacks" "$whole" -ge 99

try "closed early"
expect "nothing behind the end" "$objects-$names" = 2-2

try padded
for object in /tmp/jitted-"$pid"-*.so; do
	code "$object" | grep -q "$is_code" && complain "padded: the same code"
done

# --- unwind rules ---------------------------------------------------------------

try "no rules"
expect "names without rules" "$names-$named" = 12-100
expect "cut stacks" "$whole" -le 5
try "header first"
expect "cut stacks" "$whole" -le 5
try "wrong frame"
expect "cut stacks" "$whole" -le 75
try "rules not mapped"
if [ $rules_in_file = cut ]; then
	expect "cut stacks (libunwind)" "$whole" -le 5
else
	expect "whole stacks (libdw)" "$whole" -ge 99
fi
expect "all have names" "$names-$named" = 12-100

# --- lines ----------------------------------------------------------------------

try "no lines"
expect "names without lines" "$names-$named" = 12-100
script_lines "$work/lines" -i "$work/injected" -F ip,srcline --no-inline
grep -q 'spin\.lua:20' "$work/lines" && complain "no lines: lines"

# --- rules that are mapped hide what lies behind ----------------------------------

spin packed "--call-graph dwarf,4096" /tmp packed
cp "/tmp/jit-$pid.dump" "$work/packed.dump"
change=packed
look packed
expect "code of others is hidden" "$named" -lt 50
change="packed, in file"
"$LUAJIT" "$rules/jitdump.lua" "rules not mapped" "$work/packed.dump" \
	"/tmp/jit-$pid.dump"
look packed
expect "nothing is hidden" "$names-$named" = 12-100
expect "each has its share" "$least" -ge 50

# --- the marker -------------------------------------------------------------------

# readable NAME OPTION...: objects that are made where the only mapping of the dump
# is not executable. The other one is taken out of the recording.
mkdir "$work/other" "$work/dumps"
readable()
{
	spin "$1" "$2" "$work/other" readable "$work/dumps"
	sed -i 's|/other/jit-|/other/xxx-|g' "$work/$1"
	inject "$work/$1" "$work/injected" || :
	objects=$(find "$work/dumps" -name "jitted-$pid-*.so" | wc -l)
}

change=readable
readable plain -g
expect "no objects" "$objects" -eq 0
# With data mappings it is found all the same, which hides the mistake.
readable data "-g -d"
expect "objects with perf record -d" "$objects" -eq 12
