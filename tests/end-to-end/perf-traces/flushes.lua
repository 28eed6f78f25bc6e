-- SPDX-License-Identifier: MIT
-- Compiles functions and flushes them, over and over in the same memory, and
-- writes when each of them ran: "NAME START END", in seconds of the monotonic
-- clock. Arguments: the file for that, seconds of CPU time, the file of the dump,
-- and "jitdump"; or "map", whose names have no time: then only the functions
-- that are left in the end are written.

local windows_path, seconds, dump = arg[1], tonumber(arg[2]), arg[3]
local perf = arg[4]
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
	perf = perf })
local serial = 0
local function run(count, is_written)
	serial = serial + 1
	local name, work = make(serial)
	local start = monotonic()
	for _ = 1, count do
		work()
	end
	if is_written then
		file:write(("%s %.9f %.9f\n"):format(name, start, monotonic()))
	end
	return work
end

local finish = os.clock() + seconds
repeat
	for _ = 1, perf == "map" and 12 or 1 do
		run(1, perf == "jitdump")
	end
	jit.flush()
until os.clock() >= finish
local kept = {} -- the traces of a function that is collected go, too
for i = 1, perf == "map" and 12 or 0 do
	kept[i] = run(20, true)
end
assert(sysprof.stop())
file:close()
