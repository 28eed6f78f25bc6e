#!/bin/sh
# SPDX-License-Identifier: MIT
# What names for perf cost, and perf itself:
#
#   bench/perf-names.sh BUILD-DIRECTORY [RUNS [ROUNDS]]
#
# Needs root, perf and tracefs. The first figures are the least of the runs, which
# other load on the machine disturbs least; the last ones compare neighbours in one
# process (see paired.lua).
set -eu

build=${1:?usage: perf-names.sh BUILD-DIRECTORY [RUNS [ROUNDS]]}
runs=${2:-5}
rounds=${3:-30}
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$build" && pwd)
: "${LUAJIT:=luajit}" "${PERF:=perf}"
LUA_CPATH="$build/lib/.libs/?.so;;"
export LUA_CPATH PERF
tracing=/sys/kernel/tracing
work=$(mktemp -d)
# Without the settings of the user, and without ~/.debug.
HOME=$work
export HOME
group=
clean_up()
{
	[ -z "$group" ] || echo "-:$group/sample" >>"$tracing/uprobe_events"
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM
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

echo "# time of a program against that without a profiler: median and quartiles"
library=$(readlink -f "$build/lib/.libs/libluajit-sysprof.so")
offset=$(readelf -n "$library" | awk '/Name: sample/ { found = 1 }
	found && /Location:/ { sub(",", "", $2); print $2; exit }')
group=sysprof_bench_$$
echo "p:$group/sample $library:$offset" >>"$tracing/uprobe_events"
"$LUAJIT" "$here/perf-live.lua" "$group:sample" "$rounds"
