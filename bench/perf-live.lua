-- SPDX-License-Identifier: MIT
-- How much slower a program gets by ways to see it in perf: by a profile in mode C
-- whose samples perf records at the probe, against the profile alone, and against
-- perf record with copies of the stack. All take 999 or 1,000 samples a second.
--
-- usage: luajit perf-live.lua EVENT [ROUNDS]
--
-- EVENT is the probe. In a directory of its own; perf-names.sh calls it.
local ffi = require("ffi")
local here = arg[0]:match("^(.*)/[^/]*$") or "."
package.path = here .. "/?.lua;" .. package.path
local paired = require("paired")
local sysprof = require("misc").sysprof
local event, rounds = arg[1], tonumber(arg[2] or 30)

local function fib(n)
	return n < 2 and n or fib(n - 1) + fib(n - 2)
end
local words = {}
local function run()
	fib(24)
	for i = 1, 10000 do
		words[i % 1000 + 1] = ("%d %s"):format(i, words[i % 10 + 1] or "")
			:sub(1, 20)
	end
end

-- A profile, and what perf does meanwhile.
local function profile(name, perf, recording)
	local samples = 0
	return {
		name = name,
		start = function()
			if recording then recording.start() end
			assert(sysprof.start { mode = "C", interval = 1,
				path = "sysprof.bin", perf = perf, overhead = 100 })
		end,
		stop = function()
			samples = samples + sysprof.report().samples
			assert(sysprof.stop())
			if recording then recording.stop() end
		end,
		close = function()
			return recording and recording.close() or samples
		end,
	}
end

local dwarf = paired.perf("dwarf",
	"-k mono -e cpu-clock:u -F 999 --call-graph dwarf")
dwarf.name = "perf dwarf"
local ways = {
	profile("dump", false),
	profile("dump, perf", "map",
		paired.perf("probe", "-g -k mono -e " .. event)),
	dwarf,
}

local results = paired.compare(ways, rounds, run)
for i, way in ipairs(ways) do
	local samples = way.close()
	print(("%-12s %6.3f (%5.3f to %5.3f) %6.0f samples/s"):format(way.name,
		results[i].median, results[i].low, results[i].high,
		samples / results[i].seconds))
end
os.remove(("/tmp/perf-%d.map"):format(ffi.C.getpid()))
