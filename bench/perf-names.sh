#!/bin/sh
# SPDX-License-Identifier: MIT
# What names for perf cost, and perf itself:
#
#   bench/perf-names.sh BUILD-DIRECTORY [RUNS]
#
# Needs root, perf and tracefs. The first figures are the least of the runs, which
# other load on the machine disturbs least; the last ones are of each.
set -eu

build=${1:?usage: perf-names.sh BUILD-DIRECTORY [RUNS]}
runs=${2:-5}
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$build" && pwd)
: "${LUAJIT:=luajit}" "${PERF:=perf}"
LUA_CPATH="$build/lib/.libs/?.so;;"
export LUA_CPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# least COMMAND...: the run whose first number with a unit is the least.
least()
{
	i=0
	while [ "$i" -lt "$runs" ]; do
		"$@"
		i=$((i + 1))
	done | sort -t: -k2 -g | head -n 1
}

echo "# cost of a trace"
for kind in off map lines jitdump; do
	least "$LUAJIT" "$here/traces.lua" "$kind" 2000
done

echo "# perf inject --jit for 2,000 traces"
KEEP_FILES=1 "$PERF" record -q -k mono -e cpu-clock:u -F 100 -o data \
	"$LUAJIT" "$here/traces.lua" jitdump 2000
inject_once()
{
	start=$(date +%s%N)
	"$PERF" --buildid-dir cache inject --jit -i data -o injected
	end=$(date +%s%N)
	echo "inject: $(((end - start) / 1000000)) ms"
}
least inject_once
pid=$("$PERF" script -i data -F pid 2>/dev/null | awk 'NF { print $1; exit }')
echo "$(find /tmp -maxdepth 1 -name "jitted-$pid-*.so" | wc -l) objects"
rm -f "/tmp/jit-$pid.dump" "/tmp/perf-$pid.map" /tmp/jitted-"$pid"-*.so

echo "# CPU time of a program: alone, and with each way of recording it"
cat >work.lua <<'END'
local kind = arg[1]
local sysprof = require("misc").sysprof
if kind ~= "alone" then
	assert(sysprof.start { mode = "C", interval = 1, path = "dump",
		perf = kind ~= "dump" and kind or nil })
end
local function fib(n)
	return n < 2 and n or fib(n - 1) + fib(n - 2)
end
local words = {}
for _ = 1, tonumber(os.getenv("BENCH_ROUNDS") or 20) do
	fib(30)
	for i = 1, 200000 do
		words[i % 1000 + 1] = ("%d %s"):format(i, words[i % 10 + 1] or "")
			:sub(1, 20)
	end
end
if kind ~= "alone" then
	assert(sysprof.stop())
end
io.open("cpu", "w"):write(math.floor(os.clock() * 1000))
END
library=$(readlink -f "$build/lib/.libs/libluajit-sysprof.so")
offset=$(readelf -n "$library" | awk '/Name: sample/ { found = 1 }
	found && /Location:/ { sub(",", "", $2); print $2; exit }')
echo "p:sysprof_bench/sample $library:$offset" \
	>>/sys/kernel/tracing/uprobe_events
# CPU time of the program in ms, its kernel part and the profiler's thread
# included, but not that of perf itself.
run()
{
	"$@" >/dev/null 2>log || cat log
	cat cpu
}
# One after the other in each round: other load on the machine changes.
i=0
while [ "$i" -lt "$runs" ]; do
	alone=$(run "$LUAJIT" work.lua alone)
	dump=$(run "$LUAJIT" work.lua dump)
	live=$(run "$PERF" record -q -g -e sysprof_bench:sample -o data \
		"$LUAJIT" work.lua map)
	dwarf=$(run "$PERF" record -q -k mono -F 999 -e cpu-clock:u \
		--call-graph dwarf -o data "$LUAJIT" work.lua alone)
	again=$(run "$LUAJIT" work.lua alone)
	echo "$alone $dump $live $dwarf $again" | awk '{
		base = ($1 + $5) / 2
		printf "alone %d and %d ms; dump %+.1f %%, dump and perf " \
			"record of the probe %+.1f %%, perf record -F 999 " \
			"--call-graph dwarf %+.1f %%\n", $1, $5,
			100 * ($2 / base - 1), 100 * ($3 / base - 1),
			100 * ($4 / base - 1)
	}'
	i=$((i + 1))
done
echo "-:sysprof_bench/sample" >>/sys/kernel/tracing/uprobe_events
