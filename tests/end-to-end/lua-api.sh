#!/bin/sh
# SPDX-License-Identifier: MIT
# Lua API on the LuaJIT of this system: answers to every use and misuse
# (lua-api.lua), and what becomes of a profile when its process ends, forks,
# executes another program or has a table misc of its own.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit

# Samples in a dump, by our own parser: count_samples [--partial] DUMP.
count_samples()
{
	"$parser" "$@" 2>parser.err | sum_samples
}

check_dump()
{
	check_whole "$1"
	[ "$(count_samples "$1")" -ge "$2" ] ||
		fail "$1 has only $(count_samples "$1") samples"
}

# Two lines in front of most programs below.
cat >prelude.lua <<'LUA'
sysprof = require "misc.sysprof"
ffi = require "ffi"
function work(seconds)
	local start, sum = os.clock(), 0
	repeat
		for i = 1, 10000 do sum = sum + i % 7 end
	until os.clock() - start > seconds
	return sum
end
LUA

"$LUAJIT" "$top_srcdir/tests/end-to-end/lua-api.lua" >log ||
	{ cat log; fail "lua-api.lua"; }

# --- a process that ends without stop keeps what it has recorded --------------

start='assert(sysprof.start { mode = "C", interval = 1, path = "dump.bin" })'
for ending in 'os.exit(0)' 'os.exit(3, true)' 'error "as wanted"' 'return' \
	'os.exit(true, false)'; do
	rm -f dump.bin
	"$LUAJIT" -l prelude -e "$start work(0.2) $ending" 2>error.txt || true
	check_dump dump.bin 40
done

# Even the last whole record of one that is killed.
rm -f dump.bin
"$LUAJIT" -l prelude -e "$start work(60)" &
pid=$!
sleep 2
kill -9 $pid
wait $pid 2>/dev/null || true
[ "$(count_samples --partial dump.bin)" -ge 200 ] ||
	fail "killed process left $(count_samples --partial dump.bin) samples"

# --- fork ----------------------------------------------------------------------

cat >fork.lua <<'LUA'
ffi.cdef "int fork(void); int waitpid(int, int *, int); void _exit(int);"
local options = { mode = "C", interval = 1, path = "parent.bin" }
assert(sysprof.start(options))
work(0.2)
local child = ffi.C.fork()
if child == 0 then
	local ok, message = pcall(function()
		local report = sysprof.report()
		assert(not report.running and report.samples == 0)
		assert(select(2, sysprof.stop()) == "profiler is not running")
		work(0.2)
		assert(sysprof.report().samples == 0)
		options.path = "child.bin"
		assert(sysprof.start(options))
		work(0.2)
		assert(sysprof.stop())
		assert(sysprof.report().samples > 40)
	end)
	if not ok then print(message) end
	io.stdout:flush()
	ffi.C._exit(ok and 0 or 1)
end
local status = ffi.new("int[1]")
ffi.C.waitpid(child, status, 0)
assert(status[0] == 0, status[0])
assert(sysprof.report().running)
local before = sysprof.report().samples
work(0.2)
assert(sysprof.report().samples > before + 40)
assert(sysprof.stop())
io.open("parent.count", "w"):write(sysprof.report().samples)
LUA
"$LUAJIT" -l prelude fork.lua || fail "fork.lua"
check_dump child.bin 40
check_dump parent.bin 100
[ "$(count_samples parent.bin)" = "$(cat parent.count)" ] ||
	fail "parent.bin has $(count_samples parent.bin) samples, but" \
		"$(cat parent.count) were counted"

# A child that ends by exit() writes nothing into the parent's dump either.
cat >fork-exit.lua <<'LUA'
ffi.cdef "int fork(void); int waitpid(int, int *, int); void exit(int);"
assert(sysprof.start { mode = "C", interval = 1, path = "exit.bin" })
work(0.2)
local child = ffi.C.fork()
if child == 0 then ffi.C.exit(0) end
ffi.C.waitpid(child, ffi.new("int[1]"), 0)
assert(sysprof.stop())
io.open("exit.count", "w"):write(sysprof.report().samples)
LUA
"$LUAJIT" -l prelude fork-exit.lua || fail "fork-exit.lua"
check_dump exit.bin 40
[ "$(count_samples exit.bin)" = "$(cat exit.count)" ] || fail "exit.bin"

# --- another program -------------------------------------------------------------

# No signal that is on its way kills the program that takes the place of this
# one after stop; nor one that is only started while the profile runs.
cat >exec.lua <<'LUA'
ffi.cdef "int execl(const char *, const char *, ...);"
assert(sysprof.start { mode = "D", interval = 0.05 })
work(0.02)
assert(os.execute("exit 0") == 0)
assert(io.popen("echo child"):read("*l") == "child")
assert(sysprof.stop())
ffi.C.execl("/bin/true", "true", ffi.cast("char *", nil))
LUA
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	"$LUAJIT" -l prelude exec.lua || fail "exec.lua died"
done

# --- a table misc of the host ------------------------------------------------------

cat >own.lua <<'LUA'
local function own() return "mine" end
misc = { answer = 42, sysprof = { start = own } }
local theirs, sysprof = misc, misc.sysprof
local loaded = require "misc"
assert(loaded == theirs and misc == theirs and misc.sysprof == sysprof)
assert(misc.answer == 42 and misc.sysprof.start == own)
assert(type(misc.sysprof.stop) == "function")
assert(type(misc.sysprof.report) == "function")
assert(type(misc.sysprof.available) == "function")
local ours = require "misc.sysprof"
assert(ours ~= sysprof and ours.start ~= own)
assert(ours.stop == sysprof.stop)
assert(ours.start() == true and ours.stop() == true)
LUA
"$LUAJIT" own.lua || fail "own.lua"
"$LUAJIT" -e 'misc = { answer = 42 }
	local loaded = require "misc"
	assert(loaded == misc and misc.answer == 42)
	assert(misc.sysprof == require "misc.sysprof")' || fail "misc is a table"
"$LUAJIT" -e 'misc = "text"
	local loaded = require "misc"
	assert(misc == "text" and loaded.sysprof.start)' || fail "misc is a string"
"$LUAJIT" -e 'setmetatable(_G, { __index = error, __newindex = error })
	assert(require "misc".sysprof == require "misc.sysprof")
	assert(rawget(_G, "misc"))' || fail "globals are strict"

# --- perf by the environment --------------------------------------------------------

cat >perf.lua <<'LUA'
ffi.cdef "int getpid(void);"
local function hot() local sum = work(0.2) return sum end
assert(sysprof.start { mode = arg[1], interval = 1, path = "perf.bin" })
hot()
assert(sysprof.stop())
print(ffi.C.getpid())
LUA
run_perf()
{
	pid=$("$LUAJIT" -l prelude perf.lua "$1") || fail "perf.lua $*"
	map=/tmp/perf-$pid.map
}
run_perf C
[ ! -e "$map" ] || fail "$map was written though perf is off"
export LUAJIT_SYSPROF_PERF=1
run_perf D
[ ! -e "$map" ] || fail "$map was written in mode D"
for mode in L C; do
	run_perf $mode
	mv "$map" map.txt || fail "no map in mode $mode"
	grep -q '^[0-9a-f]* [0-9a-f]* hot perf.lua:2$' map.txt ||
		fail "hot is not in the map of mode $mode"
	grep -q '^[0-9a-f]* 10 string.format$' map.txt ||
		fail "library functions are not in the map of mode $mode"
done
export LUAJIT_SYSPROF_PERF=yes
run_perf C
[ ! -e "$map" ] || fail "LUAJIT_SYSPROF_PERF=yes is not 1"
