#!/bin/sh
# SPDX-License-Identifier: MIT
# Stacks deeper than a sample has room for: both ends are there, and what lies
# between is said, in the report and in every output.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit

parse()
{
	"$parser" "$@" 2>notices || { cat notices; fail "parser"; }
}

cat >deep.c <<'C'
#include <stdint.h>

__attribute__((noinline)) uint64_t deep_leaf(uint64_t count)
{
	volatile uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++)
		sum = sum ^ (sum << 5) ^ i;
	return sum;
}

__attribute__((noinline)) uint64_t deep_call(int depth, uint64_t count)
{
	volatile char room[32];

	room[0] = 1;
	if (depth)
		return deep_call(depth - 1, count) + room[0];
	return deep_leaf(count) + room[0];
}
C
$CC -O1 -shared -fPIC -o deep.so deep.c

# check WHICH MODE ROOT LEAF LEAST: the stacks begin and end as told, and at
# least so many frames are said to be missing.
check()
{
	"$LUAJIT" "$top_srcdir/tests/end-to-end/deep-stacks.lua" ./deep.so \
		"$1" "$2" "$1-$2.bin"
	parse -o stacks "$1-$2.bin"
	awk -v root="$3" -v leaf="$4" -v name="$1 in mode $2" '
		{ all += $NF }
		$0 ~ "^" root ";.*;\\[truncated\\];.*" leaf { whole += $NF }
		END {
			printf "%s: %d samples, %d with both ends\n", name,
				all, whole
			exit !(all >= 20 && whole >= all * 0.5)
		}' stacks || { cut -c 1-400 stacks; fail "$1 in mode $2"; }
	missing=$(sed -n 's/.*deepest stack lacks \([0-9]*\) frames.*/\1/p' \
		notices)
	[ "${missing:-0}" -ge "$5" ] || { cat notices; fail "count"; }
}

check lua C '_start;.*lua_pcall;main [^;]*' 'descend' 2400
check c C '_start;.*lua_pcall;main [^;]*;.*' 'deep_call' 2400
check both C '_start;.*lua_pcall;main [^;]*' 'deep_call' 5400
check turns C '_start;.*lua_pcall;main [^;]*' 'string.gsub' 600
check lua L '.*main [^;]*' 'descend' 2400
check turns L '.*main [^;]*' 'string.gsub' 600

# The Lua stack is whole where only native frames are too many.
"$LUAJIT" "$top_srcdir/tests/end-to-end/deep-stacks.lua" ./deep.so c L c-L.bin
parse -o stacks c-L.bin
! grep -F '[truncated]' stacks || fail "a whole Lua stack is said to be cut"

for format in top svg html speedscope pprof firefox callgrind json perf; do
	parse --format=$format -o "out.$format" both-C.bin
	case $format in
	pprof)
		gunzip -c out.pprof >out
		;;
	perf) # names lie in an object of their own
		cat out.perf.lua >out
		;;
	*)
		cat out.$format >out
		;;
	esac
	grep -aqF 'truncated]' out || fail "nothing is truncated in $format"
	grep -aq 'descend' out || fail "no descend in $format"
done
