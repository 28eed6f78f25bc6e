-- SPDX-License-Identifier: MIT
-- Eight million allocations: trees, strings, objects. Prints how long they took
-- on this thread, in seconds of CPU time and by the clock.
-- usage: allocations.lua off | OPTIONS, a table for misc.memprof.start
local ffi = require "ffi"
ffi.cdef [[
typedef struct { long seconds, ns; } allocations_time;
int clock_gettime(int, allocations_time *);
]]
local MONOTONIC, THREAD_CPU = 1, 3
local time = ffi.new "allocations_time"

local function now(clock)
	ffi.C.clock_gettime(clock, time)
	return tonumber(time.seconds) + tonumber(time.ns) / 1e9
end

local function tree(depth)
	if depth == 0 then return {} end
	return { tree(depth - 1), tree(depth - 1) }
end

local function work()
	for _ = 1, 20 do tree(16) end
	local kept = {}
	for i = 1, 500000 do kept[i % 1000 + 1] = tostring(i) .. "x" end
	for i = 1, 300000 do kept[i % 1000 + 1] = { a = i, b = {} } end
end

work()
collectgarbage()
local options = arg[1] ~= "off" and assert(loadstring("return " .. arg[1]))()
local memprof = require "misc.memprof"
if options then assert(memprof.start(options)) end
local cpu, wall = now(THREAD_CPU), now(MONOTONIC)
work()
cpu, wall = now(THREAD_CPU) - cpu, now(MONOTONIC) - wall
if options then assert(memprof.stop()) end
print(cpu, wall)
