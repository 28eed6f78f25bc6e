-- SPDX-License-Identifier: MIT
-- For host.c, whose host_signals() has a signal handler interrupt this all the
-- time.
local misc = require "misc"

local function leaf(n)
	local x = 0
	for i = 1, n do x = x + i % 7 end
	return x
end

local function middle(n)
	local x = leaf(n)
	return x + 1
end

local function outer(n)
	local x = middle(n)
	return x + 1
end

assert(misc.sysprof.start { mode = "C", interval = 0.5, path = arg[1] })
host_signals(10000)
local started = os.clock()
repeat outer(10000) until os.clock() - started > tonumber(arg[2])
host_signals(0)
assert(misc.sysprof.stop())
