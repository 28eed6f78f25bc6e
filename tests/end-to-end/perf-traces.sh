#!/bin/sh
# SPDX-License-Identifier: MIT
# An ordinary perf record of stock luajit: traces have names by the map file;
# by the jitdump also lines and callers, and names that change with time.
. "${top_srcdir:?run by make check}/tests/common.sh"
programs=$top_srcdir/tests/end-to-end/perf-traces
. "$top_srcdir/tests/end-to-end/perf-record.sh"
check_recording
need_luajit
pids=

clean_up()
{
	for pid in $pids; do
		rm -f "/tmp/perf-$pid.map" "/tmp/jit-$pid.dump" \
			/tmp/jitted-"$pid"-*.so
	done
}

# record NAME [PERF-OPTION]... -- PROGRAM...: sets pid.
record()
{
	name=$1
	shift
	"$PERF" record -q -e cpu-clock:u -o "$work/$name" "$@" \
		>"$work/$name.log" 2>&1 ||
		{ cat "$work/$name.log"; fail "perf record"; }
	pid=$("$PERF" script -i "$work/$name" -F comm,pid 2>/dev/null |
		awk '$1 != "perf" { print $(NF); exit }')
	pids="$pids $pid"
}

line_of()
{
	sed -n "/-- $1\$/=" "$programs/lines.lua"
}

# --- map -----------------------------------------------------------------------

record map -F 2000 -- "$LUAJIT" "$programs/lines.lua" map 1 "$work/traces"
"$PERF" report -i "$work/map" --no-children -s sym --stdio 2>/dev/null |
	grep -v '^#' >"$work/map.report"
grep -q 'TRACE_[0-9]* .*lines\.lua:[0-9]*$' "$work/map.report" ||
	complain "map: no trace has a name"
# What runs in memory of its own is named.
unknown=$("$PERF" script -i "$work/map" -F ip,sym,dso 2>/dev/null |
	grep -c 'unknown.*\(//anon\|perf-[0-9]*\.map\)' || :)
[ "$unknown" -eq 0 ] || complain "map: $unknown samples in traces have no name"

# --- jitdump -------------------------------------------------------------------

record lines -k mono -F 2000 --call-graph dwarf,16384 -- \
	"$LUAJIT" "$programs/lines.lua" jitdump 2 "$work/traces"
inject "$work/lines" "$work/lines.injected"
objects=0
for object in /tmp/jitted-"$pid"-*.so; do
	if readelf -Ws "$object" 2>/dev/null | grep -q ' TRACE_'; then
		objects=$((objects + 1))
	fi
done
traces=$(cat "$work/traces")
# A trace may have been collected since.
if [ "$traces" -lt 2 ] || [ "$objects" -lt "$traces" ]; then
	complain "jitdump: $objects objects for $traces traces"
fi

script_lines "$work/lines.script" -i "$work/lines.injected" \
	-F ip,sym,srcline,dso --no-inline
awk -v work="lines.lua:$(line_of work)" \
	-v inlined="lines.lua:$(line_of inlined)" '
	function finish() {
		if (leaf ~ /TRACE_/) {
			total++
			if (whole) whole_count++
			if (line == inlined) inlined_count++
			if (line == work) work_count++
		} else if (leaf ~ /jitted-/) {
			nameless++
		}
		leaf = line = ""
		whole = 0
	}
	/^[ \t]*$/ { finish(); next }
	/^[ \t]+[0-9a-f]+ / {
		if (leaf == "") leaf = $0
		if ($0 ~ /__libc_start/) whole = 1
		next
	}
	{ if (line == "") { line = $1 } }
	END {
		finish()
		printf "%d samples in traces, %d whole, %d nameless; lines: " \
			"%d work, %d inlined\n", total, whole_count, nameless, \
			work_count, inlined_count
		exit !(total >= 1500 && whole_count >= total * .99 &&
			nameless <= total * .01 && work_count >= total * .1 &&
			inlined_count >= total * .05)
	}
' "$work/lines.script" || {
	complain "jitdump: lines or callers"
	grep -o 'lines\.lua:[0-9]*' "$work/lines.script" | sort | uniq -c
	sort -u "$work/lines.script.log"
}

# --- traces that were there before ------------------------------------------------

# whole keep|flush: of the samples in traces, percent that have a name, and those
# whose callers are known.
whole()
{
	record before -k mono -F 1000 --call-graph dwarf,8192 -- \
		"$LUAJIT" "$programs/before.lua" "$work/dump" 1 "$1"
	inject "$work/before" "$work/before.injected"
	"$PERF" script -i "$work/before.injected" -F ip,sym,dso --no-inline \
		2>/dev/null | awk '
		function finish() {
			if (leaf ~ /TRACE_[0-9]+ before_/) {
				named++
				if (whole) whole_count++
			} else if (leaf ~ /jitted-|anon/) {
				other++
			}
			leaf = ""
			whole = 0
		}
		/^[ \t]*$/ { finish(); next }
		{ if (leaf == "") leaf = $0 }
		/__libc_start/ { whole = 1 }
		END {
			finish()
			print named + 0, int(100 * named / (named + other + !named)),
				int(100 * whole_count / (named + !named))
		}
	' >"$work/before.shares"
	read -r samples named whole <"$work/before.shares"
	printf 'compiled before, %s: %d samples, %d %% with names, %d %% whole\n' \
		"$1" "$samples" "$named" "$whole"
	[ "$samples" -ge 300 ] || complain "before, $1: only $samples samples"
	[ "$named" -ge 99 ] || complain "before, $1: $named % have names"
}

# libunwind reads rules only where they are mapped, which is over other traces then.
whole keep
if ! "$PERF" version --build-options 2>/dev/null | grep -q 'libunwind: \[ on'; then
	[ "$whole" -ge 99 ] || complain "before: $whole % of the stacks are whole"
elif [ "$whole" -ge 99 ]; then
	complain "before: all stacks are whole; the documents say they are not"
fi
whole flush
[ "$whole" -ge 97 ] || complain "after jit.flush(): $whole % of the stacks are whole"

# --- a child of a fork ---------------------------------------------------------

for kind in map jitdump; do
	record fork -k mono -F 2000 -- "$LUAJIT" "$programs/fork.lua" \
		"$kind" "$work/dump" "$work/child"
	child=$(cat "$work/child")
	pids="$pids $child"
	inject "$work/fork" "$work/fork.injected"
	"$PERF" script -i "$work/fork.injected" --pid "$child" -F ip,sym,dso \
		2>/dev/null |
		awk -v kind="$kind" '
			/TRACE_[0-9]+ inherited\.lua:/ { inherited++ }
			/TRACE_[0-9]+ own\.lua:/ { own++ }
			/unknown.*(anon|perf-|jitted-)/ { nameless++ }
			END {
				printf "child, %s: %d samples in code of the " \
					"parent, %d in its own, %d nameless\n",
					kind, inherited, own, nameless
				exit !(inherited >= 150 && own >= 150 &&
					nameless == 0)
			}
		' || complain "fork: names of the child ($kind)"
done

# --- several VMs -----------------------------------------------------------------

host=$(cd "$top_builddir/tests/end-to-end" && pwd)/threads_host
for kind in map jitdump; do
	# shellcheck disable=SC2016 # for that shell
	record vms -k mono -F 2000 -- sh -c 'cd "$1" && exec "$2" perf "$3"' \
		sh "$work" "$host" "$kind"
	inject "$work/vms" "$work/vms.injected"
	"$PERF" script -i "$work/vms.injected" -F comm,ip,sym,dso 2>/dev/null |
		awk -v kind="$kind" '
			$3 ~ /^TRACE_/ && ($4 ~ "work_" $1 "\\.lua:" ||
				($1 == "main" && $4 ~ /run\.lua:/)) {
				right[$1]++
				next
			}
			$3 ~ /^TRACE_/ { wrong++; print }
			/unknown.*(anon|perf-|jitted-)/ { nameless++ }
			END {
				printf "VMs, %s: %d, %d, %d and %d samples in " \
					"traces, %d with names of other VMs, " \
					"%d nameless\n", kind, right["main"],
					right["early0"], right["late0"],
					right["late1"], wrong, nameless
				# Of early0: before it has asked.
				exit !(right["main"] >= 250 && wrong == 0 &&
					right["early0"] >= 250 &&
					right["late0"] >= 250 &&
					right["late1"] >= 250 &&
					nameless <= (kind == "map" ? 0 : 1000))
			}
		' || complain "VMs: names ($kind)"
done

# --- flushes -------------------------------------------------------------------

flush_seconds=2
[ "${LONG:-no}" = no ] || flush_seconds=60
for kind in jitdump map; do
	record flushes -k mono -F 2000 -- \
		"$LUAJIT" "$programs/flushes.lua" "$work/windows" \
		"$flush_seconds" "$work/dump" "$kind"
	inject "$work/flushes" "$work/flushes.injected"
	read -r _ start _ <"$work/windows"
	"$PERF" script -i "$work/flushes.injected" --ns -F time,ip,sym \
		2>/dev/null | awk -v start="$start" '$1 + 0 >= start + 0' \
		>"$work/flushes.script"
	printf '%s: ' "$kind"
	"$LUAJIT" "$programs/compare.lua" "$work/flushes.script" \
		"$work/windows" || complain "flushes: names of other times ($kind)"
done
