#!/bin/sh
# SPDX-License-Identifier: MIT
# luajit-sysprof record: whatever way a command ends, its dump is whole and its
# exit status handed on; its children and the programs that it executes.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit
unset LUA_CPATH

# On a busy machine the default limit would lengthen the interval.
record()
{
	"$sysprof" record -i 1 --overhead=100 "$@"
}

# check DUMP LEAST: it is whole, and has so many samples of hot().
check()
{
	check_whole "$1"
	samples=$("$parser" --include='hot program.lua:1' \
		"$1" 2>parser.err | sum_samples)
	[ "$samples" -ge "$2" ] || fail "$1 has only $samples samples of hot()"
}

cat >program.lua <<'LUA'
local function hot(seconds)
	local start, sum = os.clock(), 0
	repeat
		for i = 1, 10000 do sum = sum + i % 7 end
	until os.clock() - start > seconds
	return sum
end
local ffi = require "ffi"
ffi.cdef [[
int fork(void); int waitpid(int, int *, int); void _exit(int); void abort(void);
int execl(const char *, const char *, ...); int getpid(void);
int execlp(const char *, const char *, ...); int raise(int);
]]
local none = ffi.cast("char *", nil)
local what = arg[1] or "return"
hot(0.3)
if what == "error" then error("as wanted") end
if what == "exit" then os.exit(3) end
if what == "_exit" then ffi.C._exit(4) end
if what == "signal" then hot(30) end
if what == "exec" then
	ffi.C.execl("/nowhere", "nowhere", none)
	hot(0.2)
	ffi.C.execlp("true", "true", none)
end
if what == "fork" then
	local child = ffi.C.fork()
	hot(0.3)
	if child > 0 then ffi.C.waitpid(child, nil, 0) end
end
LUA

# --- ends --------------------------------------------------------------------------

expect()
{
	wanted=$1
	shift
	status=0
	record -o dump.bin -- "$LUAJIT" program.lua "$@" >log 2>&1 || status=$?
	[ $status = "$wanted" ] || { cat log; fail "$*: status $status"; }
}

expect 0 return
check dump.bin 150
expect 1 error
check dump.bin 150
expect 3 exit
check dump.bin 150
expect 4 _exit
check dump.bin 150
grep -q 'dump.bin: [1-9][0-9]* bytes' log || fail "the dump is not told of"

# A supervisor signals the recorder, a terminal the command.
for number in TERM HUP; do
	"$sysprof" record -i 1 -o dump.bin -- \
		"$LUAJIT" program.lua signal >log 2>&1 &
	recorder=$!
	sleep 2
	kill -$number $recorder
	status=0
	wait $recorder || status=$?
	[ $status -gt 128 ] || fail "SIG$number: status $status"
	check dump.bin 300
done
# shellcheck disable=SC2016
record -o dump.bin -- sh -c 'echo $$ >pid; exec "$0" program.lua signal' \
	"$LUAJIT" >log 2>&1 &
recorder=$!
sleep 2
kill -INT "$(cat pid)"
wait $recorder || true
check dump.bin 300

# --- what it shows ------------------------------------------------------------------

mkdir show
cp dump.bin show/sysprof.bin
cd show
"$sysprof" report | grep -q '^_start;.*;hot program.lua:1' || fail report
"$sysprof" report --guest-only sysprof.bin >log
grep -q 'main program.lua:0;hot program.lua:1 [0-9]' log || fail "--guest-only"
if grep -q lua_pcall log; then fail "--guest-only shows native frames"; fi
"$sysprof" top | grep -q '[0-9]% .* hot program.lua:1$' || fail top
"$sysprof" flamegraph || fail flamegraph
grep -q 'hot program.lua:1' sysprof.html || fail "no flame graph of hot()"
"$sysprof" top nothing.bin 2>log && fail "status of a missing dump"
grep -q 'cannot open nothing.bin' log || fail "$(cat log)"
rm sysprof.bin
"$sysprof" top 2>log && fail "status without a dump"
grep -q 'luajit-sysprof top: there is no sysprof.bin here' log ||
	fail "$(cat log)"
"$sysprof" record -p 2>log && fail "status of -p without a process"
grep -q '^luajit-sysprof record: option requires an argument' log ||
	fail "$(cat log)"
cd ..

# --- other processes and programs -----------------------------------------------------

expect 0 fork
check dump.bin 300
set -- dump.bin.*
[ $# = 1 ] || fail "the child has $# dumps: $*"
check "$1" 200

# shellcheck disable=SC2016
record -o dump.bin -- sh -c '"$0" program.lua; "$0" program.lua' "$LUAJIT" \
	>log 2>&1
check dump.bin 150
set -- dump.bin.*
[ $# = 1 ] || fail "the second process has $# dumps: $*"
check "$1" 150

# An old dump does not pass for a new one.
record -o dump.bin -- true >log 2>&1 || fail "true"
if [ -e dump.bin ] || [ -e "$1" ]; then fail "an old dump was left"; fi
grep -q 'no LuaJIT was met' log || fail "that there is no dump is not told"

# No signal that is under way kills the program that takes this one's place.
i=0
while [ $i -lt 15 ]; do
	status=0
	"$sysprof" record -i 0.05 -o dump.bin -- \
		"$LUAJIT" program.lua exec >log 2>&1 || status=$?
	[ $status = 0 ] || { cat log; fail "exec: status $status"; }
	i=$((i + 1))
done

# --- the environment -------------------------------------------------------------------

LUA_INIT='ours = "kept"' record -o dump.bin -- \
	"$LUAJIT" -e 'assert(ours == "kept")' 2>log || { cat log; fail LUA_INIT; }
LUA_INIT='@init.lua' record -o dump.bin -- "$LUAJIT" -e 'os.exit(ours)' 2>log &&
	fail "a LUA_INIT that fails was ignored"
record -m X -o dump.bin -- "$LUAJIT" program.lua 2>log ||
	fail "a refused profile stops the program"
grep -q 'not profiled: process [0-9]*: mode must be' log ||
	fail "the refusal is not told: $(cat log)"
[ ! -e dump.bin ] || fail "a refused profile leaves a file"
grep -q 'no LuaJIT' log && fail "told: $(cat log)"
record -o dump.bin /nowhere/at/all 2>log && fail "status of a missing command"
grep -q '/nowhere/at/all: No such file' log || fail "$(cat log)"
status=0
record >log 2>&1 || status=$?
[ $status = 2 ] || fail "no command: status $status"
record --help | grep -q 'Usage: luajit-sysprof record' || fail "--help"
