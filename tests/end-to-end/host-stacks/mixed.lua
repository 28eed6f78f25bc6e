-- SPDX-License-Identifier: MIT
-- Library functions that call back, errors and coroutines.
-- usage: luajit mixed.lua DUMP SECONDS
local misc = require "misc"

local function less(a, b)
	return a < b
end

local function upper(letter)
	return letter:upper()
end

local function thrower(x)
	if x > 1 then
		error("thrown")
	end
	return thrower(x + 1) + 1
end

local function generator()
	for i = 1, 10 do
		coroutine.yield(i)
	end
end

local meta = setmetatable({}, {
	__index = function(_, key) return key .. "x" end,
})

local function round()
	local t = {}
	for i = 1, 60 do
		t[i] = i * 7919 % 101
	end
	table.sort(t, less)
	local s = ("abc def "):rep(40):gsub("%w", upper)
	for _ = 1, 3 do pcall(thrower, 0) end
	for i in coroutine.wrap(generator) do s = s .. i end
	for word in s:gmatch("%a+") do t[#t + 1] = meta[word] end
	return #table.concat(t, ",")
end

assert(misc.sysprof.start { mode = "C", interval = 0.5, path = arg[1] })
local started = os.clock()
repeat round() until os.clock() - started > tonumber(arg[2])
assert(misc.sysprof.stop())
