#!/bin/sh
# SPDX-License-Identifier: MIT
# sysbench: a VM on each of its threads, LuaJIT as a shared library.
program=sysbench
. "${top_srcdir:?run by make check}/tests/real/common.sh"

cat >bench.lua <<'LUA'
function hot_part(n)
	local s = 0
	for i = 1, n do s = s + i % 7 end
	return s
end
function event()
	hot_part(20000)
	sysbench.rand.uniform(1, 100)
end
LUA
"$sysprof" record -i 1 -o dump.bin -- \
	sysbench "$PWD/bench.lua" --threads=3 --time=3 run >log 2>&1 ||
	{ cat log; fail "sysbench ended with $?"; }
check_whole dump.bin
at_least "hot_part below event" \
	"$(count dump.bin '[;]lua_pcall;.*;event .*bench.lua:6;hot_part .*bench.lua:1')" 300
threads=$("$parser" --group=thread dump.bin 2>parser.err | grep ';hot_part ' |
	cut -d';' -f1 | sort -u | wc -l)
[ "$threads" = 3 ] || fail "hot_part ran on $threads threads, not 3"
