-- SPDX-License-Identifier: MIT
-- Coroutines with labels that share the work in known parts. Run by labels.sh;
-- prints the number of samples, and the percent that each label is to have.

local sysprof = require "misc.sysprof"

local function burn(units)
	local sum = 0
	for _ = 1, units do
		for i = 1, 20000 do sum = sum + i % 7 end
	end
	return sum
end

-- Each takes its part of a round at every resume.
local function search(round_count)
	for round = 1, round_count do
		-- In turn, so that a machine that gets faster does not matter.
		assert(sysprof.label(round % 2 == 1 and "/search" or "/item"))
		coroutine.yield()
		burn(40)
	end
end

local function inherit()
	while true do
		coroutine.yield()
		burn(10)
	end
end

local function rename()
	assert(sysprof.label("inner"))
	inherit()
end

local function nest()
	local inheriting = coroutine.wrap(inherit)
	local renaming = coroutine.wrap(rename)
	inheriting()
	renaming()
	assert(sysprof.label("a;b"))
	while true do
		coroutine.yield()
		burn(10)
		inheriting()
		renaming()
	end
end

local function plain()
	while true do
		coroutine.yield()
		burn(20)
	end
end

local function forget()
	assert(sysprof.label("gone"))
	assert(sysprof.label(nil))
	while true do
		coroutine.yield()
		burn(10)
	end
end

local round_count = tonumber(arg[1])
local resumes = {}
for i, work in ipairs {search, nest, plain, forget} do
	resumes[i] = coroutine.wrap(work)
	resumes[i](round_count)
end

-- What was given before the start counts too.
assert(sysprof.start {mode = "C", interval = 0.5, path = "labels.bin"})
for _ = 1, round_count do
	for i = 1, #resumes do resumes[i]() end
end
assert(sysprof.stop())

print("samples", sysprof.report().samples)
print("expect", 20, "[label /search]")
print("expect", 20, "[label /item]")
print("expect", 20, "[label a\\x3bb]")
print("expect", 10, "[label inner]")
print("expect", 30, "[no label]")
