-- SPDX-License-Identifier: MIT
-- A profile in surroundings that refuse or lack something: it is refused by name, or
-- goes on with less; the program goes on, and the next profile starts as usual.
--
-- usage: outside.lua CASE
local sysprof = require "misc.sysprof"
local ffi = require "ffi"
ffi.cdef [[
typedef struct { unsigned long cur, max; } limit;
int setrlimit(int, const limit *); int getrlimit(int, limit *);
int setuid(unsigned); int dup(int); int close(int); int umount2(const char *, int);
typedef struct { unsigned long words[16]; } signal_set;
int pthread_sigmask(int, const signal_set *, signal_set *);
]]
local EPERM, ENOENT, EAGAIN, ENOMEM = 1, 2, 11, 12
local EINVAL, EMFILE, ENOSPC, EROFS, EPIPE = 22, 24, 28, 30, 32

local function work(seconds)
	local start, sum = os.clock(), 0
	repeat
		for i = 1, 10000 do sum = sum + i % 7 end
	until os.clock() - start > seconds
	return sum
end

local function options(more)
	-- On a busy machine the default limit would lengthen the interval.
	local all = { mode = "C", interval = 1, path = "outside.bin",
		overhead = 100 }
	for name, value in pairs(more or {}) do all[name] = value end
	return all
end

-- With so much of a message, and that error number.
local function refused(code, text, more)
	local ok, message, got = sysprof.start(options(more))
	assert(not ok, "it was not refused")
	assert(message:find(text, 1, true), message)
	assert(got == code, message .. ": " .. tostring(got))
	assert(not sysprof.report().running)
end

local function profile(more, least)
	assert(sysprof.start(options(more)))
	work(0.3)
	assert(sysprof.stop())
	local report = sysprof.report()
	assert(report.samples >= (least or 50), "samples: " .. report.samples)
	return report
end

-- With RLIMIT number (as <bits/resource.h> has it) at the value.
local function with_limit(number, value, run)
	local before = ffi.new("limit")
	assert(ffi.C.getrlimit(number, before) == 0)
	local now = ffi.new("limit", value, before.max)
	assert(ffi.C.setrlimit(number, now) == 0)
	run()
	assert(ffi.C.setrlimit(number, before) == 0)
end

local cases = {}

-- Timers tick as often as the kernel does, every 4 ms at 250 Hz, and see a thread
-- less often whose processor has others to run.
function cases.no_perf()
	assert(profile(nil, 8).clock == "thread CPU timer")
	refused(EINVAL, 'clock "page-faults" cannot be counted here',
		{ clock = "page-faults" })
	refused(EPERM, "the kernel does not tell its frames (perf_event_open: ",
		{ kernel = true })
	assert(profile({ clock = "wall" }, 8).clock == "wall clock timer")
	assert(profile({ scope = "process" }, 8).threads == 1)
end

function cases.no_thread_timer()
	assert(profile(nil, 8).clock == "process timer")
	refused(EPERM, "timer_create: Operation not permitted",
		{ clock = "wall" })
	profile({ scope = "process" }, 8)
end

function cases.no_clock()
	local ok, reason = sysprof.available()
	assert(ok == false and reason:find("setitimer", 1, true), reason)
	for _, scope in ipairs { "vm", "process" } do
		refused(EPERM, "no clock to sample by (perf_event_open: " ..
			"Operation not permitted; timer_create: Operation not " ..
			"permitted; setitimer: Operation not permitted); allow",
			{ scope = scope })
	end
	refused(EPERM, "no clock", { mode = "D" })
end

-- Names for perf have their place in /tmp.
function cases.no_tmp()
	profile()
	refused(EROFS, "/tmp/perf-", { perf = true })
	profile()
end

function cases.read_only()
	refused(EROFS, "outside.bin: Read-only file system")
	profile({ path = "/dev/shm/outside.bin" })
	os.remove("/dev/shm/outside.bin")
	profile({ mode = "D" })
end

-- Where code is, is known from /proc alone, so a start without it is refused; one
-- that has started goes on.
function cases.no_proc()
	assert(sysprof.start(options()))
	work(0.1)
	assert(ffi.C.umount2("/proc", 2) == 0)
	work(0.3)
	assert(sysprof.stop())
	assert(sysprof.report().samples > 100)
	local ok, message = sysprof.start(options())
	if ok then
		work(0.1)
		assert(sysprof.stop())
	else
		assert(message:find("/proc", 1, true), message)
	end
	ok, message = sysprof.start(options { scope = "process" })
	assert(not ok and message:find("/proc", 1, true), message)
	assert(not sysprof.report().running)
	assert(sysprof.start { mode = "D" } == nil or sysprof.stop())
end

function cases.descriptors()
	profile()
	local free = ffi.C.dup(0)
	ffi.C.close(free)
	for more = 0, 8 do
		with_limit(7, free + more, function()
			local ok, message, code = sysprof.start(options())
			if ok then
				work(0.02)
				assert(sysprof.stop())
			else
				assert(type(code) == "number" and code > 0)
				assert(#message > 10, message)
			end
			if more == 0 then assert(not ok) end
		end)
		local lowest = ffi.C.dup(0)
		ffi.C.close(lowest)
		assert(lowest == free, "a descriptor is left open")
	end
	profile({ scope = "process" })
end

function cases.memory()
	profile()
	collectgarbage()
	collectgarbage("stop")
	local bytes
	for line in io.lines("/proc/self/status") do
		local kb = line:match("^VmSize:%s*(%d+)")
		if kb then bytes = tonumber(kb) * 1024 end
	end
	local refusals = 0
	for more = 0, 24 do
		with_limit(9, bytes + more * 2 ^ 20, function()
			local ok, message, code = sysprof.start(options())
			if ok then
				work(0.02)
				sysprof.stop()
			else
				refusals = refusals + 1
				assert(code == ENOMEM or code == EAGAIN, message)
			end
		end)
	end
	assert(refusals > 0, "nothing was refused")
	collectgarbage("restart")
	profile()
end

-- Root may have as many threads as it wants.
function cases.threads()
	local path = { path = "threads.bin" }
	assert(ffi.C.setuid(65534) == 0)
	profile(path, 20)
	with_limit(6, 0, function()
		refused(EAGAIN, "no thread for the profile's writer", path)
	end)
	profile(path, 20)
end

function cases.signals()
	with_limit(11, 0, function()
		profile()
		assert(profile({ mode = "D" }).samples > 50)
	end)
	profile()
end

-- Timers need a queued signal each.
function cases.signals_without_perf()
	with_limit(11, 0, function()
		assert(profile(nil, 8).clock == "process timer")
	end)
	assert(profile(nil, 8).clock == "thread CPU timer")
end

function cases.disk()
	assert(sysprof.start(options { path = "disk/outside.bin",
		interval = 0.1 }))
	local start = os.time()
	local function deep(depth)
		if depth == 0 then return work(0.001) end
		return 1 + deep(depth - 1)
	end
	repeat deep(math.random(100)) until os.clock() > 2 or os.time() - start > 20
	local ok, message, code = sysprof.stop()
	assert(not ok and code == ENOSPC, message)
	assert(message:find("disk/outside.bin: No space left on device", 1, true))
	profile()
	-- The next dump finds no room either: the program goes on.
	ok = sysprof.start(options { path = "disk/outside.bin", rotate = 1 })
	if ok then
		work(0.1)
		assert(not sysprof.stop())
	end
	profile()
end

function cases.pipe()
	assert(sysprof.start(options { path = "pipe" }))
	work(0.3)
	local start = os.time()
	-- The reader ends after a second.
	repeat work(0.1) until os.time() - start > 3
	local ok, message, code = sysprof.stop()
	assert(not ok and code == EPIPE and message:find("pipe: ", 1, true), message)
	profile()
end

-- Blocked before: refused. Blocked later: said, until it is over.
function cases.blocked()
	local prof = ffi.new("signal_set")
	prof.words[0] = bit.lshift(1, 26) -- SIGPROF
	assert(ffi.C.pthread_sigmask(0, prof, nil) == 0)
	refused(EINVAL, "SIGPROF is blocked on this thread",
		{ signal = "SIGPROF" })
	assert(ffi.C.pthread_sigmask(1, prof, nil) == 0)
	for _, mode in ipairs { "C", "D" } do
		assert(sysprof.start(options { mode = mode, signal = "SIGPROF" }))
		work(0.2)
		local before = sysprof.report()
		assert(before.blocked_threads == 0)
		assert(ffi.C.pthread_sigmask(0, prof, nil) == 0)
		work(0.3)
		local blocked = sysprof.report()
		assert(blocked.blocked_threads == 1)
		assert(blocked.samples - before.samples < 50)
		assert(ffi.C.pthread_sigmask(1, prof, nil) == 0)
		work(0.3)
		local after = sysprof.report()
		assert(after.blocked_threads == 0)
		assert(after.samples - blocked.samples > 50)
		assert(sysprof.stop())
	end
end

cases[arg[1]]()
