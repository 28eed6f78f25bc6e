-- SPDX-License-Identifier: MIT
-- Work for the interpreter: one instruction for most of the time of each function,
-- and a trace that is left all the time. usage: luajit bytecodes.lua DUMP
local misc = require "misc"

local function fields(t)
	local x
	for _ = 1, 1000 do
		x = t.a x = t.a x = t.a x = t.a x = t.a
		x = t.a x = t.a x = t.a x = t.a x = t.a
	end
	return x
end
jit.off(fields)

local function concatenate(a)
	local s
	for i = 1, 1000 do s = a .. i end
	return s
end
jit.off(concatenate)

local function leave(n)
	local x = 0
	for i = 1, n do
		if i % 2 == 0 then x = x + 1 else x = x - 2 end
	end
	return x
end

jit.opt.start("hotexit=60000") -- no side traces
assert(misc.sysprof.start { mode = "C", interval = 1, path = arg[1] })
local started, t, text = os.clock(), { a = 1 }, ("x"):rep(100)
repeat fields(t) until os.clock() - started > 0.4
started = os.clock()
repeat concatenate(text) until os.clock() - started > 0.4
started = os.clock()
repeat leave(1000) until os.clock() - started > 0.4
assert(misc.sysprof.stop())
-- Which instructions there are: each name takes six places.
for name in require("jit.vmdef").bcnames:gmatch("......") do
	print("BC_" .. name:match("%S+"))
end
