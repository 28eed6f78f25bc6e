-- SPDX-License-Identifier: MIT
-- Time that starting and stopping a profile takes in a big program: 100,000 Lua
-- functions and 5,000 traces, or what the arguments say. Each is the least of five
-- cycles; with "jitdump" and "map" the first start is given as well, since it names
-- what was compiled before.
--
-- usage: luajit start.lua [FUNCTIONS [TRACES]]
local ffi = require("ffi")
local sysprof = require("misc").sysprof
local function_count = tonumber(arg[1] or 100000)
local trace_count = tonumber(arg[2] or 5000)
local CYCLES, FUNCTIONS_PER_CHUNK = 5, 100
local CLOCK_MONOTONIC = 1

ffi.cdef [[
	struct timespec { long tv_sec, tv_nsec; };
	int clock_gettime(int clock, struct timespec *now);
	int getpid(void);
]]
local now = ffi.new("struct timespec")
local function milliseconds()
	ffi.C.clock_gettime(CLOCK_MONOTONIC, now)
	return tonumber(now.tv_sec) * 1e3 + tonumber(now.tv_nsec) / 1e6
end

local keep = {}
local text = {}
for i = 1, FUNCTIONS_PER_CHUNK do
	text[i] = ("function(a) return a + %d end"):format(i)
end
text = "return {\n" .. table.concat(text, ",\n") .. "}"
for i = 1, function_count / FUNCTIONS_PER_CHUNK do
	keep[i] = assert(loadstring(text, ("@functions_%d.lua"):format(i)))()
end
jit.opt.start("maxtrace=60000", "maxmcode=65536", "sizemcode=1024")
for i = 1, trace_count do
	assert(loadstring("local s = 0 for i = 1, 100 do s = s + i % 7 end",
		("@loop_%d.lua"):format(i)))()
end
local traces = 0
for number = 1, 65535 do
	traces = traces + (require("jit.util").traceinfo(number) and 1 or 0)
end
print(("%d functions, %d traces, %.0f MB held by the VM"):format(function_count,
	traces, collectgarbage("count") / 1e3))

local function measure(name, options)
	local first, least_start, least_stop
	for _ = 1, CYCLES do
		options.path, options.mode = "/dev/null", options.mode or "C"
		local before = milliseconds()
		assert(sysprof.start(options))
		local started = milliseconds()
		local spin_until = started + 20
		repeat until milliseconds() > spin_until
		local stopping = milliseconds()
		assert(sysprof.stop())
		local stop, start = milliseconds() - stopping, started - before
		first = first or start
		least_start = math.min(least_start or start, start)
		least_stop = math.min(least_stop or stop, stop)
	end
	print(("%-20s start %6.2f ms, the first %6.2f ms; stop %6.2f ms"):format(
		name, least_start, first, least_stop))
end

measure("mode D", { mode = "D" })
measure("mode L", { mode = "L" })
measure("mode C", {})
measure("mode C, map", { perf = "map" })
measure("mode C, jitdump", { perf = "jitdump" })
os.remove("/tmp/perf-" .. ffi.C.getpid() .. ".map")
os.remove("/tmp/jit-" .. ffi.C.getpid() .. ".dump")
