-- SPDX-License-Identifier: MIT
-- A thousand starts and stops: what is held, mapped and open does not grow.
local sysprof = require "misc.sysprof"
local cycles = tonumber(arg[1])

local function count(path, pattern)
	local file, n = assert(io.open(path)), 0
	for line in file:lines() do
		local number = line:match(pattern)
		if number then n = n + (tonumber(number) or 1) end
	end
	file:close()
	return n
end

local function state()
	collectgarbage()
	collectgarbage()
	return count("/proc/self/status", "^VmRSS:%s*(%d+)"),
		count("/proc/self/maps", "(-)")
end

local function cycle(i)
	local options = { mode = i % 7 == 0 and "D" or "C", interval = 1,
		path = "cycles.bin", scope = i % 5 == 0 and "process" or "vm" }
	assert(sysprof.start(options))
	for _ = 1, 2000 do options = { options } end
	assert(sysprof.stop())
end

for i = 1, cycles / 10 do cycle(i) end
local rss_kb, maps = state()
local start = os.time()
for i = 1, cycles do cycle(i) end
local rss_after_kb, maps_after = state()
print(("%d cycles in %d s: %d kB more, %d mappings more"):format(cycles,
	os.time() - start, rss_after_kb - rss_kb, maps_after - maps))
assert(rss_after_kb - rss_kb < 2000)
assert(maps_after - maps < 10)
