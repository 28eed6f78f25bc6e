#!/bin/sh
# SPDX-License-Identifier: MIT
# perf record sees each chain that the beacon emits, with the names of the map
# file, in order and to the last frame.
. "${top_srcdir:?run by make check}/tests/common.sh"
. "$top_srcdir/tests/end-to-end/perf-probe.sh"
check_perf
program=$top_builddir/tests/end-to-end/perf_beacon_program
set_probe "$program"

"$PERF" record -q -N -e "$event" -g -m 1024 -o "$work/data" \
	"$program" >"$work/expected"
"$PERF" script -i "$work/data" -F ip,sym,dso --no-inline \
	>"$work/script" 2>"$work/warnings"
map=$(sed -n 's|.* (\(/tmp/perf-[0-9]*\.map\))$|\1|p' "$work/script" |
	head -n 1)
rm -f "${map:?perf names nothing by a map file}"

# One line a sample, as the program prints it.
awk '
	/^$/ { if (stack != "") print stack; stack = "" }
	/^[ \t]+[0-9a-f]/ {
		sub(/^[ \t]+[0-9a-f]+ /, "")
		sub(/ \([^(]*\)$/, "")
		stack = stack (stack == "" ? "" : ";") $0
	}
	END { if (stack != "") print stack }
' "$work/script" >"$work/got"

if ! diff "$work/expected" "$work/got" >"$work/difference"; then
	echo "what was emitted (<) is not what perf shows (>):"
	cut -c 1-300 "$work/difference" | head -n 10
	exit 1
fi
count=$(wc -l <"$work/got")
[ "$count" -eq 1000 ] || fail "$count chains instead of 1000"
echo "$count of 1000 chains in perf as they were emitted"
