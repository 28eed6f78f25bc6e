-- SPDX-License-Identifier: MIT
-- How much slower a program gets by a profile in mode C, by signals to an empty
-- handler, and by perf record at the same rate.
--
-- usage: luajit slow-down.lua PROGRAM.lua BUILD-DIRECTORY [ROUNDS]
--
-- In a directory of its own; slow-down.sh calls it for each program.
local here = arg[0]:match("^(.*)/[^/]*$") or "."
package.path = here .. "/?.lua;" .. package.path
local ffi = require("ffi")
local paired = require("paired")
local sysprof = require("misc").sysprof
local path, build, rounds = arg[1], arg[2], tonumber(arg[3] or 15)
local INTERVALS_MS = { 10, 1, 0.2 }

ffi.cdef [[
	int empty_clock_start(uint64_t interval_ns);
	unsigned long empty_clock_stop(void);
]]
local empty_clock = ffi.load(build .. "/bench/.libs/empty_clock.so")

local run = assert(loadfile(path))()
local ways = {}
local function add(name, interval, way)
	way.name, way.interval = name, interval
	table.insert(ways, way)
end
for _, interval in ipairs(INTERVALS_MS) do
	local perf = ("-e cpu-clock:u -F %d "):format(1000 / interval)
	local signals, samples = 0, 0
	add("empty", interval, {
		start = function()
			assert(empty_clock.empty_clock_start(interval * 1e6) == 0)
		end,
		stop = function()
			signals = signals + tonumber(empty_clock.empty_clock_stop())
		end,
		close = function() return signals end,
	})
	add("mode C", interval, {
		start = function()
			assert(sysprof.start { mode = "C", interval = interval,
				path = "sysprof.bin", overhead = 100 })
		end,
		stop = function()
			samples = samples + sysprof.report().samples
			assert(sysprof.stop())
		end,
		close = function() return samples end,
	})
	add("perf -g", interval, paired.perf("g-" .. interval, perf .. "-g"))
	add("perf dwarf", interval, paired.perf("dwarf-" .. interval,
		perf .. "--call-graph dwarf"))
end

local results = paired.compare(ways, rounds, run)
for i, way in ipairs(ways) do
	local samples = way.close()
	print(("%-12s %-3s %5s ms %-10s %6.3f (%5.3f to %5.3f) %8.0f samples/s")
		:format(path:match("([%w_]+)%.lua$"), jit.status() and "on" or "off",
		way.interval, way.name, results[i].median, results[i].low,
		results[i].high, samples / results[i].seconds))
end
