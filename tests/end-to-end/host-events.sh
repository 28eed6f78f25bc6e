#!/bin/sh
# SPDX-License-Identifier: MIT
# What may happen to a process while it is profiled, none of which may harm it:
# forks, closed descriptors, another directory, full disks, limits, replaced
# handlers; and the clocks that may be asked for.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit

# count DUMP [OPTION...]: samples in a dump that is whole.
count()
{
	dump=$1
	shift
	check_whole "$dump"
	"$parser" "$@" "$dump" 2>parser.err | sum_samples
}

run()
{
	"$LUAJIT" -l prelude "$@" || fail "$* ended with $?"
}

cat >prelude.lua <<'LUA'
sysprof = require "misc.sysprof"
ffi = require "ffi"
ffi.cdef [[
int fork(void); int waitpid(int, int *, int); void _exit(int);
int close(int); int open(const char *, int, ...); int getpid(void);
int chdir(const char *); int usleep(unsigned); int setuid(unsigned);
long write(int, const void *, size_t); int ftruncate(int, long);
typedef void (*handler)(int); handler signal(int, handler);
typedef struct { unsigned long cur, max; } limit;
int setrlimit(int, const limit *);
void *mmap(void *, size_t, int, int, int, long);
]]
function work(seconds)
	local start, sum = os.clock(), 0
	repeat
		for i = 1, 10000 do sum = sum + i % 7 end
	until os.clock() - start > seconds
	return sum
end
function wait(child)
	local status = ffi.new("int[1]")
	ffi.C.waitpid(child, status, 0)
	return status[0]
end
function start(options)
	options.mode = options.mode or "C"
	options.interval = options.interval or 1
	assert(sysprof.start(options))
end
LUA

# --- a child that is profiled as well, and its child ----------------------------

cat >follow.lua <<'LUA'
start { path = "follow.bin", fork = "follow" }
work(0.2)
local child = ffi.C.fork()
if child == 0 then
	assert(sysprof.report().running and sysprof.report().samples < 20)
	work(0.2)
	local grandchild = ffi.C.fork()
	work(0.2)
	if grandchild > 0 then assert(wait(grandchild) == 0) end
	assert(sysprof.stop())
	local file = io.open("child." .. ffi.C.getpid(), "w")
	file:write(sysprof.report().samples, "\n")
	file:close()
	ffi.C._exit(0)
end
assert(wait(child) == 0)
work(0.2)
assert(sysprof.stop())
assert(sysprof.report().samples > 200)
LUA
run follow.lua
at_least follow.bin "$(count follow.bin)" 200
children=0
for child in child.*; do
	pid=${child#child.}
	[ "$(count "follow.bin.$pid")" = "$(cat "$child")" ] ||
		fail "follow.bin.$pid is not whole"
	at_least "$child" "$(cat "$child")" 100
	children=$((children + 1))
done
[ $children = 2 ] || fail "$children children were profiled"

# A fork is not slowed down by the memory of the profiler.
cat >quick.lua <<'LUA'
local function forks()
	local start = os.clock()
	for _ = 1, 50 do
		local child = ffi.C.fork()
		if child == 0 then ffi.C._exit(0) end
		wait(child)
	end
	return os.clock() - start
end
local without = forks()
start { path = "quick.bin", interval = 0.1 }
work(1)
local with = forks()
assert(sysprof.stop())
assert(with < 2 * without + 0.05, with .. " against " .. without)
LUA
run quick.lua

# By default a child is not profiled, and writes to no file of the parent's.
cat >alone.lua <<'LUA'
start { path = "alone.bin" }
work(0.2)
local child = ffi.C.fork()
if child == 0 then
	assert(not sysprof.report().running)
	work(0.3)
	start { path = "apart.bin" }
	work(0.2)
	os.exit(sysprof.stop() and 0 or 1)
end
assert(wait(child) == 0)
assert(sysprof.stop())
assert(sysprof.report().samples < 300, sysprof.report().samples)
LUA
run alone.lua
at_least alone.bin "$(count alone.bin)" 100
at_least apart.bin "$(count apart.bin)" 100

# --- other ends -------------------------------------------------------------------------

# A dump is whole up to its last half second, whatever ends the process.
cat >ends.lua <<'LUA'
ffi.cdef "void abort(void); int kill(int, int);"
ffi.C.setrlimit(4, ffi.new("limit", 0, 0)) -- no core
start { path = arg[1] .. ".bin" }
work(1)
-- What was sampled by now is on the disk by then, even on a busy machine.
local until_time = os.time() + 3
repeat ffi.C.usleep(100000) until os.time() >= until_time
if arg[1] == "abort" then ffi.C.abort() end
ffi.C.kill(ffi.C.getpid(), 9)
LUA
for ending in abort kill; do
	"$LUAJIT" -l prelude ends.lua $ending 2>ends.err &&
		fail "$ending did not end it"
	samples=$("$parser" --partial $ending.bin 2>parser.err | sum_samples)
	at_least "$ending.bin" "$samples" 500
done

# --- rights that are given up ---------------------------------------------------------------

if [ "$(id -u)" = 0 ]; then
	cat >rights.lua <<'LUA'
start { path = "rights.bin", scope = "process" }
work(0.3)
assert(ffi.C.setuid(65534) == 0)
local before = sysprof.report().samples
work(0.5)
assert(sysprof.report().samples > before + 200)
assert(sysprof.stop())
LUA
	run rights.lua
	at_least rights.bin "$(count rights.bin --include=work)" 400
fi

# --- our own library is unloaded --------------------------------------------------------------

cat >unload.lua <<'LUA'
ffi.cdef "void *dlopen(const char *, int); int dlclose(void *);"
local names = {}
for line in io.lines("/proc/self/maps") do
	local name = line:match("(/%S*/misc%.so)$") or
		line:match("(/%S*/libluajit%-sysprof%.so%S*)$")
	if name then names[name] = true end
end
assert(next(names), "neither module nor library is loaded")
start { path = "unload.bin" }
work(0.2)
for name in pairs(names) do
	for _ = 1, 5 do ffi.C.dlclose(ffi.C.dlopen(name, 2)) end
	-- More often than it was opened, but for what Lua itself closes.
	if name:find("libluajit") then
		local handle = ffi.C.dlopen(name, 2)
		for _ = 1, 5 do ffi.C.dlclose(handle) end
	end
end
work(0.3)
assert(sysprof.report().samples > 300)
assert(sysprof.stop())
LUA
run unload.lua
at_least unload.bin "$(count unload.bin)" 300

# --- descriptors that the host closes ---------------------------------------------

# A daemon goes on; its files get the numbers of ours, and not a byte of ours.
cat >daemon.lua <<'LUA'
start { path = "daemon.bin" }
work(0.3)
assert(ffi.C.chdir("/") == 0)
for fd = 3, 100 do ffi.C.close(fd) end
local own = {}
for i = 1, 30 do
	own[i] = ffi.C.open(arg[1] .. "/own." .. i, 66, ffi.cast("int", 420))
	ffi.C.write(own[i], "mine\n", 5)
end
work(0.7)
assert(sysprof.report().samples > 600, sysprof.report().samples)
assert(sysprof.stop())
for i = 1, 30 do assert(ffi.C.write(own[i], "mine\n", 5) == 5) end
LUA
run daemon.lua "$work"
printf 'mine\nmine\n' >expected
for file in own.*; do
	cmp "$file" expected || fail "$file was written to"
done
at_least daemon.bin "$(count daemon.bin)" 600

# Gone together with its directory: an error by name, and the host goes on.
mkdir gone
cat >gone.lua <<'LUA'
start { path = "gone/dump.bin" }
work(0.2)
os.remove("gone/dump.bin")
for fd = 3, 100 do ffi.C.close(fd) end
work(0.8)
local ok, message, code = sysprof.stop()
assert(not ok and message:find("gone/dump.bin: ", 1, true) and code == 9,
	message)
start { path = "again.bin" }
work(0.2)
assert(sysprof.stop())
LUA
run gone.lua
at_least again.bin "$(count again.bin)" 100

# --- disks and limits ---------------------------------------------------------------

cat >full.lua <<'LUA'
local ok, message, code = sysprof.start { mode = "C", path = "/dev/full" }
assert(not ok and code == 28, message)
assert(message == "/dev/full: No space left on device", message)
ffi.C.signal(25, ffi.cast("handler", 1)) -- SIGXFSZ is ignored
assert(ffi.C.setrlimit(1, ffi.new("limit", 20000, 1e9)) == 0)
start { path = "limited.bin", interval = 0.1 }
work(1.5)
ok, message, code = sysprof.stop()
assert(not ok and code == 27, message)
assert(ffi.C.setrlimit(1, ffi.new("limit", 1e9, 1e9)) == 0)
start { path = "unlimited.bin" }
work(0.2)
assert(sysprof.stop())
LUA
run full.lua
at_least unlimited.bin "$(count unlimited.bin)" 100
[ "$(wc -c <limited.bin)" -le 20000 ] || fail "limited.bin is too long"

# A pipe that nobody reads: the host never waits for it. What it waits for is what
# is left of the time when that on a CPU and that in line for one are taken off.
mkfifo pipe
sh -c 'exec <pipe; sleep 30' &
reader=$!
cat >slow.lua <<'LUA'
local function seconds_scheduled()
	local file = assert(io.open("/proc/self/schedstat"))
	local on_cpu, in_line = file:read("*n", "*n")
	file:close()
	return (on_cpu + in_line) / 1e9
end
start { path = "pipe", interval = 0.05 }
local before = os.time() - seconds_scheduled()
work(4)
local waited = os.time() - seconds_scheduled() - before
assert(waited < 2.5, "the host waited for " .. waited .. " s")
local report = sysprof.report()
assert(report.held_bytes < 100e6)
print(report.lost["ring full"])
io.stdout:flush()
ffi.C._exit(0)
LUA
"$LUAJIT" -l prelude slow.lua >slow.out || fail "slow.lua"
kill $reader 2>/dev/null || true
[ "$(cat slow.out)" -ge 0 ] || fail "slow.lua printed $(cat slow.out)"

# --- the host replaces our handler of faults ------------------------------------------

cat >segv.lua <<'LUA'
start { path = "segv.bin" }
work(0.2)
local ours = ffi.C.signal(11, ffi.cast("handler", 0))
work(0.2)
local report = sysprof.report()
assert(report.lost["fault handler replaced"] > 100)
assert(report.samples < 300)
assert(sysprof.stop())
start { path = "after.bin" }
work(0.2)
assert(sysprof.report().samples > 100)
assert(sysprof.stop())
LUA
run segv.lua
at_least segv.bin "$(count segv.bin)" 100
at_least after.bin "$(count after.bin)" 100

# --- clocks ------------------------------------------------------------------------------

cat >clocks.lua <<'LUA'
-- Blocked time counts by the wall clock, and not by the CPU's.
local function sleep(seconds)
	local ends = os.time() + seconds
	repeat ffi.C.usleep(100000) until os.time() >= ends
end
start { path = "wall.bin", clock = "wall", interval = 5 }
sleep(2)
assert(sysprof.report().clock == "wall clock timer")
assert(sysprof.stop())
assert(sysprof.report().samples >= 150, sysprof.report().samples)
start { path = "cpu.bin", clock = "cpu", interval = 5 }
sleep(2)
assert(sysprof.stop())
assert(sysprof.report().samples <= 40, sysprof.report().samples)
local ok, message, code = sysprof.start { clock = "no-such-event" }
assert(not ok and code == 22, message)
assert(message:find('clock "no-such-event" is not known', 1, true), message)
assert(message:find("cpu, wall", 1, true), message)
if not message:find("page-faults", 1, true) then
	print("no events here: " .. message)
	os.exit(0)
end
start { path = "faults.bin", clock = "page-faults", interval = 10 }
local bytes = 4096 * 2000
local memory = ffi.cast("char *", ffi.C.mmap(nil, bytes, 3, 0x22, -1, 0))
local function touch()
	for i = 0, bytes - 1, 4096 do memory[i] = 1 end
end
touch()
assert(sysprof.stop())
local samples = sysprof.report().samples
assert(samples >= 150 and samples <= 400, samples)
assert(sysprof.report().clock == "page-faults")
LUA
run clocks.lua
"$parser" --include=usleep wall.bin >/dev/null || fail "no blocked usleep"
if [ -e faults.bin ]; then
	at_least touch "$(count faults.bin --include='clocks.lua:')" 150
fi

# --- other programs in its place ------------------------------------------------------------

# A signal that is under way when the process executes another program is none that
# ends it. Each program goes on to the next one, without a stop.
cat >exec.lua <<'LUA'
ffi.cdef "int execl(const char *, const char *, ...);"
local left = tonumber(arg[1])
if left == 0 then
	print("done")
	os.exit(0)
end
start { mode = "D", interval = 0.1 }
work(0.01)
ffi.C.execl(arg[-3], arg[-3], "-l", "prelude", "exec.lua", tostring(left - 1),
	ffi.cast("char *", nil))
LUA
LUAJIT=$(command -v "$LUAJIT")
[ "$("$LUAJIT" -l prelude exec.lua 200)" = "done" ] ||
	fail "a program was ended by a signal of the one before"

# --- a sampler that would take too much lengthens its interval ------------------------------

cat >overload.lua <<'LUA'
local function deep(n)
	if n > 0 then return 1 + deep(n - 1) end
	return work(1.5)
end
jit.off()
start { path = "overload.bin", interval = 0.05, overhead = 0.5 }
deep(150)
local report = sysprof.report()
assert(report.interval == 0.05 and report.interval_now > 0.05)
assert(report.handler_ns < 0.006 * report.interval_now * 1e6,
	report.handler_ns .. " ns each " .. report.interval_now .. " ms")
assert(sysprof.stop())
local file = io.open("overload.count", "w")
file:write(sysprof.report().samples)
file:close()
LUA
run overload.lua
# What the interval was lengthened by is what a sample counts more.
[ "$(count overload.bin)" -ge $((2 * $(cat overload.count) - 100)) ] ||
	fail "overload.bin: $(count overload.bin) of $(cat overload.count) samples"
