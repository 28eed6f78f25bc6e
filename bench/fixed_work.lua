-- SPDX-License-Identifier: MIT
-- A program of tests/programs for a number of rounds, and the seconds that the VM's
-- thread had a CPU for them: those by the clock without those in line for one. Its
-- CPU time would leave out interrupts, where much of the work of perf is done.
--
-- usage: luajit fixed_work.lua PROGRAM.lua count SECONDS     how many rounds fit
--        luajit fixed_work.lua PROGRAM.lua ROUNDS [INTERVAL] with a profile of mode C
--
-- The seconds go to the file "seconds" in the current directory, since perf record
-- has the standard streams.
local ffi = require("ffi")
local path, rounds, argument = arg[1], arg[2], tonumber(arg[3])
ffi.cdef [[
	struct timespec { long tv_sec, tv_nsec; };
	int clock_gettime(int clock, struct timespec *now);
]]
local CLOCK_MONOTONIC = 1

local now = ffi.new("struct timespec")
local function thread_seconds()
	local file = assert(io.open("/proc/self/schedstat"))
	local _, in_line_ns = file:read("*n", "*n")
	file:close()
	ffi.C.clock_gettime(CLOCK_MONOTONIC, now)
	return tonumber(now.tv_sec) + (tonumber(now.tv_nsec) - in_line_ns) / 1e9
end

local run = assert(loadfile(path))()
run()
local start, count = thread_seconds(), 0
if rounds == "count" then
	repeat
		run()
		count = count + 1
	until thread_seconds() - start > argument
	print(count)
	return
end
local sysprof = argument and require("misc").sysprof
if sysprof then
	assert(sysprof.start { mode = "C", interval = argument,
		path = "sysprof.bin", overhead = 100 })
	start = thread_seconds()
end
for _ = 1, tonumber(rounds) do
	run()
end
local seconds = thread_seconds() - start
if sysprof then
	assert(sysprof.stop())
end
assert(io.open("seconds", "w")):write(seconds, "\n")
