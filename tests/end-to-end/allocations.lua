-- SPDX-License-Identifier: MIT
-- Allocations whose lines and numbers are known. Prints "MARK LINE" for each
-- line with a marker comment, for memprof.sh to look up.
-- usage: allocations.lua OPTIONS, a table constructor for misc.memprof.start
local memprof = require "misc.memprof"

local kept, dropped = {}, {}

local function keep(i)
	kept[i] = { i } -- mark: leak
end

local function drop(i)
	dropped[i % 100 + 1] = { i, i } -- mark: garbage
end

local function text(i)
	dropped[i % 100 + 101] = string.rep("x", 200) .. i -- mark: text
end

local function closure(i)
	dropped[201] = function() return i end -- mark: closure
end

local function in_coroutine(i)
	dropped[202] = { i } -- mark: coroutine
end

-- Chunks come and go at the same addresses.
local function storm(i)
	local chunk = loadstring("return {...}, " .. i, "=storm" .. i % 7)
	dropped[203] = chunk(i)
end

local function grow()
	local t = {}
	for i = 1, 5000 do
		t[i] = i -- mark: grow
	end
	return t
end

for i = 1, 400 do dropped[i] = false end
for i = 1, 20001 do kept[i] = false end

local options = assert(loadstring("return " .. arg[1]))()
collectgarbage()
assert(memprof.start(options))
for i = 1, 20000 do
	keep(i)
	drop(i)
	if i % 10 == 0 then text(i) end
	if i % 20 == 0 then closure(i) end
end
for i = 1, 500 do storm(i) end
local thread = coroutine.wrap(function()
	for i = 1, 1000 do
		in_coroutine(i)
		if i % 100 == 0 then coroutine.yield() end
	end
end)
for _ = 1, 11 do thread() end
kept[20001] = grow()
dropped = nil
collectgarbage()
collectgarbage()
assert(memprof.stop())

local number = 0
for line in io.lines(arg[0]) do
	number = number + 1
	local mark = line:match "%-%- mark: (%a+)$"
	if mark then print(mark, number) end
end
