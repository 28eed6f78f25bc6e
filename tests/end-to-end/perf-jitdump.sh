#!/bin/sh
# SPDX-License-Identifier: MIT
# perf inject --jit makes an object of each piece of code in a jitdump, and
# perf report names it, its lines and its callers.
. "${top_srcdir:?run by make check}/tests/common.sh"
. "$top_srcdir/tests/end-to-end/perf-record.sh"
check_recording
program=$top_builddir/tests/end-to-end/perf_jitdump_program

# perf's unwinders find the rules only in objects whose path begins /tmp/jitted-
# (libdw), so the dump is in /tmp itself.
"$PERF" record -q -k mono -F 2000 -e cpu-clock:u --call-graph dwarf,4096 \
	-o "$work/data" "$program" /tmp apart >"$work/record.log" 2>&1
"$PERF" script -i "$work/data" --show-mmap-events -F comm,pid,event,ip \
	>"$work/maps" 2>/dev/null
pid=$(sed -n 's|.*r-xp /tmp/jit-\([0-9]*\)\.dump$|\1|p' "$work/maps" |
	head -n 1)
[ -n "$pid" ] || fail "perf has recorded no mapping of the jitdump"
clean_up()
{
	rm -f "/tmp/jit-$pid.dump" /tmp/jitted-"$pid"-*.so
}

inject "$work/data" "$work/injected"
objects=$(find /tmp -maxdepth 1 -name "jitted-$pid-*.so" | wc -l)
[ "$objects" -eq 12 ] ||
	{ cat inject.log; fail "$objects objects made of 12 pieces of code"; }

script_lines "$work/script" -i "$work/injected" -F ip,sym,srcline --no-inline
# One line a sample: leaf symbol, its line, is main among the callers?
awk '
	function finish() {
		if (leaf != "")
			print leaf, line, whole
		leaf = ""
	}
	/^$/ { finish(); next }
	/^[ \t]+[0-9a-f]/ {
		if (leaf == "") {
			leaf = $2; line = ""; whole = "cut"
		}
		if ($2 == "main")
			whole = "whole"
	}
	/^[ \t]+spin\.lua:/ { if (line == "") line = $1 }
	END { finish() }
' "$work/script" >"$work/samples"

awk '
	$1 ~ /^TRACE_/ {
		total++
		names[$1] = 1
		lines[$2]++
		if ($3 == "whole") whole++
	}
	END {
		for (name in names) name_count++
		printf "%d samples in generated code, %d of 12 names, " \
			"%d whole, lines 10: %d, 20: %d\n", total, name_count, \
			whole, lines["spin.lua:10"], lines["spin.lua:20"]
		if (total < 800 || name_count != 12 || whole < total * .99 ||
		    lines["spin.lua:10"] < total * .4 ||
		    lines["spin.lua:20"] < total * .4)
			exit 1
	}
' "$work/samples" || {
	sort "$work/samples" | uniq -c | sort -rn | head -n 20
	sort -u "$work/script.log"
	exit 1
}

# Without -k mono nothing is made, and perf inject says so with exit status 0:
# why objects are counted above.
rm -f /tmp/jitted-"$pid"-*.so
"$PERF" record -q -F 100 -e cpu-clock:u -o "$work/wrong" "$program" /tmp apart \
	>"$work/record.log" 2>&1
inject "$work/wrong" "$work/wrong.injected" || :
wrong=$("$PERF" script -i "$work/wrong" --show-mmap-events \
	-F comm,pid,event,ip 2>/dev/null |
	sed -n 's|.*r-xp /tmp/jit-\([0-9]*\)\.dump$|\1|p' | head -n 1)
rm -f "/tmp/jit-${wrong:?}.dump"
if ls /tmp/jitted-"$wrong"-*.so >"$work/objects" 2>/dev/null; then
	rm -f /tmp/jitted-"$wrong"-*.so
	echo "perf makes objects without -k mono: the documents are wrong"
	exit 1
fi
