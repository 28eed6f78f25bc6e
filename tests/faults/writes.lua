-- SPDX-License-Identifier: MIT
-- Writes of the profiler that fail or take long, by the preload fail_nth.
--
-- usage: writes.lua CASE
local sysprof = require "misc.sysprof"
local ffi = require "ffi"
ffi.cdef [[
void fail_writes(int code); void slow_writes(unsigned us);
int fork(void); int waitpid(int, int *, int); void _exit(int);
int usleep(unsigned); long readlink(const char *, char *, size_t);
]]
local C = ffi.C
local ENOSPC, EDQUOT = 28, 122

local function work(seconds)
	local start, sum = os.clock(), 0
	repeat
		for i = 1, 10000 do sum = sum + i % 7 end
	until os.clock() - start > seconds
	return sum
end

-- For a minute at most.
local function work_until(condition)
	local start = os.time()
	repeat work(0.1) until condition(sysprof.report()) or
		os.time() - start > 60
	assert(condition(sysprof.report()), "it does not happen")
end

local function unwritten()
	return sysprof.report().lost["dump not written"]
end

local cases = {}

-- A disk that is full for a while: the dump of the next period is there again, and
-- tells how many samples the disk did not take.
function cases.again()
	assert(sysprof.start { mode = "C", interval = 1, path = "again.bin",
		rotate = 1 })
	work_until(function(report) return report.samples > 200 end)
	for _ = 1, 2 do
		C.fail_writes(ENOSPC)
		local before = unwritten()
		work_until(function() return unwritten() > before + 1000 end)
		local dumps = sysprof.report().dumps
		C.fail_writes(0)
		work_until(function(report) return report.dumps > dumps + 1 end)
	end
	assert(sysprof.stop())
	local report = sysprof.report()
	print(report.samples, report.dumps, unwritten())
end

-- Full to the end: an error by name, and all is counted.
function cases.full()
	assert(sysprof.start { mode = "C", interval = 1, path = "full.bin",
		rotate = 1 })
	work_until(function(report) return report.samples > 200 end)
	C.fail_writes(ENOSPC)
	work_until(function() return unwritten() > 1000 end)
	work(1)
	local ok, message, code = sysprof.stop()
	assert(not ok and code == ENOSPC, message)
	assert(message:find("full%.bin%.%d+%.%S+: No space left on device$"),
		message)
	assert(unwritten() <= sysprof.report().samples)
	C.fail_writes(0)
	print(sysprof.report().samples, sysprof.report().dumps, unwritten())
end

-- The quota is named, and what helps; no file is left.
function cases.quota()
	C.fail_writes(EDQUOT)
	local ok, message, code = sysprof.start { mode = "C",
		path = "quota.bin" }
	assert(not ok and code == EDQUOT, message)
	assert(message:find("quota.bin: Disk quota exceeded: the quota of its " ..
		"owner is used up; remove files", 1, true), message)
	assert(not io.open("quota.bin"), "a file is left")
	local memprof = require "misc.memprof"
	ok, message, code = memprof.start("quota.bin")
	assert(not ok and code == EDQUOT and message:find("the quota", 1, true),
		message)
	assert(not io.open("quota.bin"), "a file is left")
	-- One that was there stays.
	io.open("quota.bin", "w"):close()
	assert(not sysprof.start { mode = "C", path = "quota.bin" })
	assert(io.open("quota.bin")):close()
	C.fail_writes(0)
	assert(sysprof.start { mode = "C", interval = 1, path = "quota.bin" })
	work(0.2)
	C.fail_writes(EDQUOT)
	ok, message, code = sysprof.stop()
	assert(not ok and code == EDQUOT and message:find("the quota", 1, true),
		message)
	C.fail_writes(0)
end

-- A child has no dump open, neither the one that ends nor the one that begins.
function cases.fork()
	local function open_dumps()
		local name, count = ffi.new("char[?]", 4096), 0
		for fd = 3, 100 do
			local length = C.readlink("/proc/self/fd/" .. fd, name,
				4096)
			if length > 0 and ffi.string(name, length)
				:find("/fork%.bin[^/]*$") then
				count = count + 1
			end
		end
		return count
	end
	assert(sysprof.start { mode = "C", interval = 1, path = "fork.bin",
		rotate = 1 })
	C.slow_writes(300000)
	local most, status = 0, ffi.new("int[1]")
	local start = os.time()
	repeat
		work(0.02)
		local here = open_dumps()
		local child = C.fork()
		if child == 0 then C._exit(open_dumps()) end
		C.waitpid(child, status, 0)
		assert(status[0] == 0, "a child has a dump of its parent open")
		most = math.max(most, here)
	until (most == 2 and os.time() - start > 6) or os.time() - start > 60
	C.slow_writes(0)
	assert(most == 2, "no fork came while a dump took the other's place")
	assert(sysprof.stop())
end

cases[arg[1]]()
