-- SPDX-License-Identifier: MIT
-- Nothing but Lua. usage: luajit lua.lua DUMP SECONDS
local misc = require "misc"

local function spin(n)
	local x, t = 0, {}
	for i = 1, n do
		x = x + i % 7
		t[i % 10] = { x }
	end
	return x
end

local function descend(depth)
	if depth == 0 then
		return spin(1000)
	end
	local r = descend(depth - 1)
	return r + 1
end

assert(misc.sysprof.start { mode = "C", interval = 0.5, path = arg[1] })
local started = os.clock()
repeat descend(10) spin(5000) until os.clock() - started > tonumber(arg[2])
assert(misc.sysprof.stop())
