-- SPDX-License-Identifier: MIT
-- Recursion in Lua, in C, in both, and through both by turns, deeper than a
-- sample has room for. usage: luajit deep-stacks.lua LIBRARY WHICH MODE DUMP
local ffi = require "ffi"
local misc = require "misc"

ffi.cdef "uint64_t deep_call(int depth, uint64_t count);"

local native = ffi.load(arg[1])

local function descend(depth, bottom)
	if depth == 0 then
		bottom()
		return 0
	end
	return 1 + descend(depth - 1, bottom)
end

local function nest(depth)
	if depth == 0 then
		native.deep_call(0, 100000)
		return "b"
	end
	local s = ("a"):gsub("a", function() return nest(depth - 1) end)
	return s
end

local work = {}

function work.lua()
	descend(3000, function() native.deep_call(0, 100000) end)
end

function work.c() native.deep_call(3000, 100000) end

function work.both()
	descend(3000, function() native.deep_call(3000, 100000) end)
end

function work.turns() nest(600) end

assert(misc.sysprof.start { mode = arg[3], interval = 1, path = arg[4] })
local run = work[arg[2]]
local started = os.clock()
repeat run() until os.clock() - started > 0.4
local report = misc.sysprof.report()
assert(misc.sysprof.stop())
assert(report.incomplete["[truncated]"] >= report.samples / 2 or
	arg[2] == "c" and arg[3] == "L", "the report tells of no truncation")
