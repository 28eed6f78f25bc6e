-- SPDX-License-Identifier: MIT
-- A profile in several dumps; prints what report() says of it.
--
-- usage: rotate.lua "time" | "bytes" | "fork" | "moved" | "cycles"
local sysprof = require "misc.sysprof"
local kind = arg[1]

-- Described in the first dump, and needed again in the last one.
local function early(seconds)
	local start, sum = os.clock(), 0
	repeat
		for i = 1, 1000 do sum = sum + #tostring(i) end
	until os.clock() - start > seconds
	return sum
end

local function compiled(seconds)
	local start, sum = os.clock(), 0
	repeat
		for i = 1, 10000 do sum = sum + i % 7 end
	until os.clock() - start > seconds
	return sum
end

-- Stacks that are all different.
local left, right
function left(depth)
	if depth == 0 then return 0 end
	return 1 + (math.random(2) == 1 and left or right)(depth - 1)
end
function right(depth)
	if depth == 0 then return 0 end
	return 2 + (math.random(2) == 1 and left or right)(depth - 1)
end
local function scatter(seconds)
	local start, sum = os.clock(), 0
	repeat
		for _ = 1, 100 do sum = sum + left(40) end
	until os.clock() - start > seconds
	return sum
end

local function report()
	local counts = sysprof.report()
	assert(counts.held_bytes == counts.held.samplers + counts.held.writer)
	assert(counts.held.writer > 0 and counts.held_bytes < 2 ^ 27)
	print(counts.samples, counts.dumps, counts.removed_dumps)
end

-- Works until the report says so, or for a minute. Each job is called by its name.
local jobs = {
	early = function() return early(0.1) + 0 end,
	compiled = function() return compiled(0.1) + 0 end,
	scatter = function() return scatter(0.1) + 0 end,
}
local function work(name, enough)
	local start = os.time()
	repeat
		jobs[name]()
	until enough(sysprof.report()) or os.time() - start > 60
	assert(enough(sysprof.report()), "not enough within a minute")
end

local function dumps(count)
	return function(counts) return counts.dumps >= count end
end

if kind == "time" then
	assert(sysprof.start { mode = "C", interval = 0.5, path = "dump.bin",
		rotate = 1 })
	work("early", dumps(1))
	work("compiled", dumps(3))
	-- Both in the last dump.
	local before
	repeat
		before = sysprof.report().dumps
		early(0.05)
		compiled(0.05)
	until sysprof.report().dumps == before
	assert(sysprof.stop())
	report()
elseif kind == "bytes" then
	jit.off()
	assert(sysprof.start { mode = "C", interval = 0.1, path = "dump.bin",
		rotate = "64K", rotate_limit = "1M" })
	work("scatter", function(counts) return counts.removed_dumps > 0 end)
	assert(sysprof.stop())
	report()
elseif kind == "fork" then
	local ffi = require "ffi"
	ffi.cdef "int fork(void); int waitpid(int, int *, int); int getpid(void);"
	assert(sysprof.start { mode = "C", interval = 1, path = "dump.bin",
		rotate = 1, fork = "follow" })
	local child = ffi.C.fork()
	work("compiled", dumps(2))
	assert(sysprof.stop())
	print(ffi.C.getpid(), sysprof.report().dumps)
	if child > 0 then ffi.C.waitpid(child, nil, 0) end
elseif kind == "moved" then
	assert(sysprof.start { mode = "C", interval = 1, path = "place/dump.bin",
		rotate = 2 })
	assert(os.rename("place", "elsewhere"))
	local start = os.time()
	repeat compiled(0.1) until os.time() - start > 4
	assert(sysprof.report().dumps == 1)
	assert(sysprof.stop())
	report()
elseif kind == "cycles" then
	for _ = 1, 50 do
		assert(sysprof.start { mode = "C", path = "dump.bin", rotate = 1 })
		assert(sysprof.stop())
	end
end
