#!/bin/sh
# SPDX-License-Identifier: MIT
# luajit-sysprof inject: an ordinary recording gets the Lua stacks of a dump of
# the same time, and the shares of a program are those that are known: 20, 30
# and 50 % (examples/shares.lua), within 2 points.
# work comes from perf-record.sh:
# shellcheck disable=SC1091,SC2154
set -eu

: "${top_srcdir:?run by make check}" "${top_builddir:?}"
: "${LUAJIT:=luajit}"
. "$top_srcdir/tests/end-to-end/perf-record.sh"
command=$top_builddir/tools/luajit-sysprof
check_recording
command -v "$LUAJIT" >/dev/null ||
	skip "luajit is missing (Debian package: luajit)"
status=0
EXAMPLE_SECONDS=${PERF_INJECT_SECONDS:-6}
export EXAMPLE_SECONDS

fail()
{
	echo "FAIL $1"
	status=1
}

cat >"$work/run.lua" <<'END'
local sysprof = require("misc").sysprof
assert(sysprof.start { mode = "C", interval = 1, path = arg[1] })
dofile(arg[2])
assert(sysprof.stop())
END

# check NAME LUAJIT-OPTION [PERF-OPTION]...
check()
{
	name=$1
	jit=$2
	shift 2
	"$PERF" record -q -k mono -F 997 -e cpu-clock:u "$@" -o "$work/data" \
		"$LUAJIT" "$jit" "$work/run.lua" "$work/dump" \
		"$top_srcdir/examples/shares.lua" >"$work/log" 2>&1
	"$command" inject -i "$work/data" -d "$work/dump" -o "$work/out" \
		>"$work/result" || {
		fail "$name: inject"
		return
	}
	before=$("$PERF" script -i "$work/data" -F ip 2>/dev/null |
		grep -c '^$' || :)
	"$PERF" script -i "$work/out" -F ip,sym --max-stack 512 \
		2>"$work/warnings" >"$work/script"
	after=$(grep -c '^$' "$work/script" || :)
	# Without call chains perf script prints no empty lines.
	[ "$before" -eq 0 ] || [ "$after" -eq "$before" ] ||
		fail "$name: $before samples became $after"
	printf '%-12s %s; ' "$name" "$(sed -n 1p "$work/result" |
		sed 's/.*; //')"
	awk '
		function finish() {
			if (part != "") { count[part]++; total++ }
			if (part != "" && !whole) cut++
			part = ""
			whole = 0
		}
		/^$/ { finish() }
		/ (twenty|thirty|fifty) .*shares\.lua:/ { part = $2 }
		/ main .*shares\.lua:0$/ { lua = 1 }
		/ __libc_start_main/ { whole = 1 }
		END {
			finish()
			a = 100 * count["twenty"] / total
			b = 100 * count["thirty"] / total
			c = 100 * count["fifty"] / total
			printf "%d in the three functions: %.1f, %.1f, %.1f %%" \
				", %d cut\n", total, a, b, c, cut
			exit !(lua && cut == 0 && a > 18 && a < 22 &&
				b > 28 && b < 32 && c > 48 && c < 52)
		}
	' "$work/script" || fail "$name: shares"
	matched=$(sed -n 's/.*(\([0-9]*\)\.[0-9] %).*/\1/p' "$work/result")
	[ "$matched" -ge 90 ] || fail "$name: only $matched % matched"
}

check compiled -jon
check dwarf -jon --call-graph dwarf
check interpreted -joff -g

"$PERF" record -q -e cpu-clock:u -o "$work/data" true >"$work/log" 2>&1
"$command" inject -i "$work/data" -d "$work/dump" -o "$work/out" \
	2>"$work/message" && fail "took a recording with another clock"
grep -q 'record with perf record -k mono' "$work/message" ||
	fail "no remedy for the clock"
exit $status
