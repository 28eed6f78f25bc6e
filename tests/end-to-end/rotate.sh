#!/bin/sh
# SPDX-License-Identifier: MIT
# A profile in several dumps: each is whole and readable by itself, each sample is
# in one of them, and together they take no more than they may.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit
program=$top_srcdir/tests/end-to-end/rotate.lua

run()
{
	rm -rf ./*
	timeout 120 "$LUAJIT" "$program" "$1" >report || fail "$1: see above"
	read -r samples dumps removed <report
}

# sum PATTERN DUMP...: samples of stacks that match, in all.
sum()
{
	pattern=$1
	shift
	for dump; do
		"$parser" "$dump" || fail "$dump: see above"
	done | awk -v pattern="$pattern" \
		'$0 ~ pattern { sum += $NF } END { print sum + 0 }'
}

run time
set -- dump.bin.*
[ $# = "$dumps" ] || fail "$# dumps, report() says $dumps"
for dump; do
	check_whole "$dump"
	expr "$dump" : 'dump\.bin\.[0-9]*\.20[0-9]*T[0-9]*\.[0-9]*Z$' \
		>/dev/null || fail "$dump: not named by process and time"
	[ "$(sum '(unknown|symbol table full)' "$dump")" = 0 ] ||
		fail "$dump has functions without a name"
	[ "$(sum 'main [^;]*rotate.lua:0' "$dump")" -ge \
		$(($(sum . "$dump") * 9 / 10)) ] ||
		fail "$dump: most stacks are not below the program's chunk"
done
found=$(sum . "$@")
[ "$found" = "$samples" ] ||
	fail "$found samples in all dumps, report() says $samples"
last=$(printf '%s\n' "$@" | tail -n 1)
[ "$(sum 'early [^;]*rotate.lua' "$1" "$last")" -gt 0 ] || fail "no early()"
[ "$(sum 'compiled [^;]*rotate.lua' "$last")" -gt 0 ] || fail "no compiled()"
[ "$(sum 'early [^;]*rotate.lua' "$last")" -gt 0 ] ||
	fail "the last dump does not know what the first one described"

run bytes
set -- dump.bin.*
[ $# = $((dumps - removed)) ] ||
	fail "$# dumps, report() says $dumps less $removed"
bytes=$(cat "$@" | wc -c)
[ "$bytes" -le $((1310720)) ] || fail "$bytes bytes of dumps, allowed are 1 MiB"
sum . "$@" >/dev/null
last=$(printf '%s\n' "$@" | tail -n 1)
"$parser" --compat "$last" >compat
grep -q 'lua_pcall' compat || fail "the known format lacks names in $last"

run fork
while read -r process dumps; do
	set -- dump.bin."$process".*
	[ $# = "$dumps" ] || fail "process $process has $# dumps, not $dumps"
	[ "$(sum 'compiled [^;]*rotate.lua' "$@")" -gt 0 ] ||
		fail "process $process is empty"
done <report

# The next dump cannot be opened: the first one takes it all.
rm -rf ./*
mkdir place
timeout 120 "$LUAJIT" "$program" moved >report || fail "moved: see above"
read -r samples dumps removed <report
found=$(sum . elsewhere/dump.bin.*)
[ "$found" = "$samples" ] || fail "$found samples, report() says $samples"

# Short profiles behind each other: no dump takes another one's name.
rm -rf ./*
timeout 120 "$LUAJIT" "$program" cycles || fail "cycles: see above"
set -- dump.bin.*
[ $# = 50 ] || fail "$# dumps of 50 profiles"

rm -rf ./*
cat >loop.lua <<'LUA'
local start = os.time()
repeat for i = 1, 1e6 do end until os.time() - start > 2
LUA
unset LUA_CPATH
"$sysprof" record --rotate=1 -- "$LUAJIT" loop.lua 2>told ||
	fail "record: $(cat told)"
set -- sysprof.bin.*
[ $# -ge 2 ] || fail "record --rotate made $# dumps"
grep -q "sysprof.bin.PID.TIME: $# dumps, " told || fail "told: $(cat told)"
sum . "$@" >/dev/null
