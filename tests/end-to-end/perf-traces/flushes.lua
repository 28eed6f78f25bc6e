-- SPDX-License-Identifier: MIT
-- Compiles functions and flushes them, over and over in the same memory, and
-- writes when each of them ran: "NAME START END", in seconds of the monotonic
-- clock. Arguments: the file for that, seconds of CPU time, and the file of the
-- dump.

local windows_path, seconds, dump = arg[1], tonumber(arg[2]), arg[3]
local sysprof = require("misc").sysprof
local ffi = require("ffi")
ffi.cdef [[
	struct timespec { long tv_sec, tv_nsec; };
	int clock_gettime(int clock, struct timespec *now);
]]
jit.off(true, true)

local now = ffi.new("struct timespec")
local function monotonic()
	ffi.C.clock_gettime(1, now)
	return tonumber(now.tv_sec) + tonumber(now.tv_nsec) / 1e9
end

local function make(serial)
	local name = "gen_" .. serial
	return name, assert(loadstring([[
		local sum = 0
		for i = 1, 3000000 do
			sum = sum + i % ]] .. serial % 11 + 2 .. [[

		end
		return sum
	]], "@" .. name .. ".lua"))
end

local file = assert(io.open(windows_path, "w"))
assert(sysprof.start { mode = "L", interval = 1000, path = dump,
	perf = "jitdump" })
local finish, serial = os.clock() + seconds, 0
repeat
	serial = serial + 1
	local name, work = make(serial)
	local start = monotonic()
	work()
	file:write(("%s %.9f %.9f\n"):format(name, start, monotonic()))
	jit.flush()
until os.clock() >= finish
assert(sysprof.stop())
file:close()
