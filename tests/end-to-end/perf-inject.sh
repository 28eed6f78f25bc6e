#!/bin/sh
# SPDX-License-Identifier: MIT
# luajit-sysprof inject: an ordinary recording gets the Lua stacks of a dump of
# the same time, and the shares of a program are those that are known: 20, 30
# and 50 % (examples/shares.lua), within 2 points.
. "${top_srcdir:?run by make check}/tests/common.sh"
. "$top_srcdir/tests/end-to-end/perf-record.sh"
check_recording
need_luajit
EXAMPLE_SECONDS=${PERF_INJECT_SECONDS:-6}
export EXAMPLE_SECONDS

cat >"$work/run.lua" <<'END'
local sysprof = require("misc").sysprof
assert(sysprof.start { mode = "C", interval = 1, path = arg[1] })
dofile(arg[2])
assert(sysprof.stop())
END

# inject_shares NAME LUAJIT-OPTION [PERF-OPTION]...: are the shares right?
inject_shares()
{
	name=$1
	jit=$2
	shift 2
	"$PERF" record -q -k mono -F 997 -e cpu-clock:u "$@" -o "$work/data" \
		"$LUAJIT" "$jit" "$work/run.lua" "$work/dump" \
		"$top_srcdir/examples/shares.lua" >"$work/log" 2>&1
	"$sysprof" inject -i "$work/data" -d "$work/dump" -o "$work/out" \
		>"$work/result" || complain "$name: inject"
	before=$("$PERF" script -i "$work/data" -F ip 2>/dev/null |
		grep -c '^$' || :)
	"$PERF" script -i "$work/out" -F ip,sym --max-stack 512 \
		2>"$work/warnings" >"$work/script"
	after=$(grep -c '^$' "$work/script" || :)
	# Without call chains perf script prints no empty lines.
	[ "$before" -eq 0 ] || [ "$after" -eq "$before" ] ||
		complain "$name: $before samples became $after"
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
	' "$work/script"
}

# check NAME LUAJIT-OPTION [PERF-OPTION]...: a busy machine may take the CPU away from
# one of the functions more often than from others, but not twice.
check()
{
	inject_shares "$@" || inject_shares "$@" || complain "$1: shares"
	matched=$(sed -n 's/.*(\([0-9]*\)\.[0-9] %).*/\1/p' "$work/result")
	[ "$matched" -ge 90 ] || complain "$1: only $matched % matched"
}

check compiled -jon
check dwarf -jon --call-graph dwarf
check interpreted -joff -g

check registers -joff --user-regs=bx,ip
grep -q '^[0-9]* are of a Lua function' "$work/result" ||
	complain "registers: no function is known by them"

# Two functions that take turns every two milliseconds: which of them a sample is
# in is known by its time, and to inject by its registers.
cat >"$work/turns.lua" <<'END'
local windows, dump, seconds = arg[1], arg[2], tonumber(arg[3])
local sysprof = require("misc").sysprof
local ffi = require("ffi")
ffi.cdef [[
	struct timespec { long tv_sec, tv_nsec; };
	int clock_gettime(int clock, struct timespec *now);
]]
local now = ffi.new("struct timespec")
local function monotonic()
	ffi.C.clock_gettime(1, now)
	return tonumber(now.tv_sec) + tonumber(now.tv_nsec) / 1e9
end
local function first(count)
	local sum = 0
	for i = 1, count do sum = sum + i % 3 end
	return sum
end
local function second(count)
	local sum = 0
	for i = 1, count do sum = sum + i % 3 end
	return sum
end
first(1e5)
local start = monotonic()
first(1e6)
local count = 1e6 * 0.002 / (monotonic() - start)
local list = {}
assert(sysprof.start { mode = "L", interval = 1, path = dump })
local finish = os.clock() + seconds
repeat
	local one = monotonic()
	first(count)
	local two = monotonic()
	second(count)
	list[#list + 1] = ("%.9f %.9f first\n%.9f %.9f second"):format(one, two,
		two, monotonic())
until os.clock() >= finish
assert(sysprof.stop())
io.open(windows, "w"):write(table.concat(list, "\n"), "\n")
END

# turns NAME [PERF-OPTION]...: sets right and wrong.
turns()
{
	name=$1
	shift
	"$PERF" record -q -k mono -F 997 -e cpu-clock:u "$@" -o "$work/data" \
		"$LUAJIT" -joff "$work/turns.lua" "$work/windows" \
		"$work/dump" "${PERF_INJECT_SECONDS:-3}" >"$work/log" 2>&1
	"$sysprof" inject -i "$work/data" -d "$work/dump" -o "$work/out" \
		>"$work/result"
	"$PERF" script -i "$work/out" --ns -F time,ip,sym 2>/dev/null |
		awk -v windows="$work/windows" '
		BEGIN {
			while ((getline <windows) > 0) {
				start[count] = $1; finish[count] = $2
				name[count++] = $3
			}
		}
		function end() {
			while (at < count && finish[at] < time) at++
			if (found != "" && at < count && start[at] <= time) {
				if (found == name[at]) right++; else wrong++
			}
			found = ""
		}
		/^ *[0-9.]+: *$/ { end(); time = $1 + 0 }
		$2 == "first" || $2 == "second" { if (!found) found = $2 }
		END { end(); print right + 0, wrong + 0 }
	' >"$work/turns"
	read -r right wrong <"$work/turns"
	printf '%-12s %d in the function that ran, %d in the other one\n' \
		"$name" "$right" "$wrong"
}

turns "by time"
by_time=$((1000 * wrong / (right + wrong + 1)))
turns "by register" --user-regs=bx,ip
by_register=$((1000 * wrong / (right + wrong + 1)))
[ "$right" -ge 500 ] || complain "turns: only $right samples"
if [ "$by_register" -gt 10 ] || [ "$by_register" -ge "$by_time" ]; then
	complain "turns: $by_register of 1000 wrong by register, $by_time by time"
fi

"$PERF" record -q -e cpu-clock:u -o "$work/data" true >"$work/log" 2>&1
"$sysprof" inject -i "$work/data" -d "$work/dump" -o "$work/out" \
	2>"$work/message" && complain "took a recording with another clock"
grep -q 'record with perf record -k mono' "$work/message" ||
	complain "no remedy for the clock"
