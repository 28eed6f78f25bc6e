-- SPDX-License-Identifier: MIT
-- Cost of names for perf by trace: compiles loops, each a trace of its own, and
-- prints the CPU time for one, on the VM's thread and in the whole process, and
-- the bytes in the files. Arguments: "off", "map", "lines" or "jitdump", and how
-- many traces. Compare with "off"; the profiler takes no samples meanwhile.

local kind, count = arg[1], tonumber(arg[2] or 2000)
local sysprof = require("misc").sysprof
local ffi = require("ffi")
ffi.cdef [[
	struct timespec { long tv_sec, tv_nsec; };
	int clock_gettime(int clock, struct timespec *now);
	int getpid(void);
]]
jit.opt.start("maxtrace=60000", "maxmcode=65536", "sizemcode=1024")
jit.off(true, true)

local now = ffi.new("struct timespec")
local function thread_seconds()
	ffi.C.clock_gettime(3, now)
	return tonumber(now.tv_sec) + tonumber(now.tv_nsec) / 1e9
end

local chunks = {}
for i = 1, count do
	chunks[i] = assert(loadstring(([[
		local list = { 1, 2, 3, 4 }
		local sum = 0
		for i = 1, 100 do
			sum = sum + list[i %% 4 + 1] %% %d
			if sum > 1e9 then sum = 0 end
		end
		return sum
	]]):format(i % 97 + 2), "@chunk_" .. i .. ".lua"))
end

local function size_of(path)
	local file = io.open(path)
	local bytes = file and file:seek("end") or 0
	if file then
		file:close()
		os.remove(path)
	end
	return bytes
end

assert(sysprof.start { mode = "L", interval = 3600000, path = "/dev/null",
	perf = kind ~= "off" and kind })
local process, thread = os.clock(), thread_seconds()
for i = 1, count do
	chunks[i]()
end
thread = thread_seconds() - thread
assert(sysprof.stop())
process = os.clock() - process

local traces = 0
for number = 1, 65535 do
	traces = traces + (require("jit.util").tracemc(number) and 1 or 0)
end
local pid = ffi.C.getpid()
if os.getenv("KEEP_FILES") then
	os.exit(0)
end
print(("%-8s %d traces: %.1f us each on the VM's thread, %.1f us in the "
	.. "process; map %.0f bytes each, jitdump %.0f"):format(kind, traces,
	thread / traces * 1e6, process / traces * 1e6,
	size_of("/tmp/perf-" .. pid .. ".map") / traces,
	size_of("/tmp/jit-" .. pid .. ".dump") / traces))
