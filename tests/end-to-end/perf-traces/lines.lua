-- SPDX-License-Identifier: MIT
-- Compiled loops whose shares of the time are known, by their lines. Arguments:
-- "map" or "jitdump" for the profiler's names, seconds of CPU time, and a file
-- that gets the number of traces.

local perf, seconds, traces_path = arg[1], tonumber(arg[2]), arg[3]
local sysprof = require("misc").sysprof

local cache = {}
for i = 1, 16 do
	cache[i] = i
end

-- A function shows where the trace could go on elsewhere within it: behind the
-- store there is such a place.
local function inlined(x)
	local i = x % 16 + 1
	cache[i] = x
	return cache[17 - i] % 7 + math.sqrt(cache[i]) -- inlined
end

local function work(parts)
	local sum = 0
	for i = 1, parts * 10000 do
		sum = sum + i % 3 -- work
	end
	return sum
end

local function other(parts)
	local sum = 0
	for i = 1, parts * 10000 do
		sum = sum + inlined(i)
	end
	return sum
end

assert(sysprof.start { mode = "L", interval = 1000, path = traces_path,
	perf = perf })
local finish = os.clock() + seconds
repeat
	work(5)
	other(5)
until os.clock() >= finish
-- Counted while names are written: this loop is compiled, too.
local jutil = require("jit.util")
local count = 0
for number = 1, 1000 do
	count = count + (jutil.tracemc(number) and 1 or 0)
end
assert(sysprof.stop())

local file = assert(io.open(traces_path, "w"))
file:write(count, "\n")
file:close()
