-- SPDX-License-Identifier: MIT
-- For host.c, which registers host_work() and host_call().
local misc = require "misc"

local function inner()
	host_work(3000)
	local x = 0
	for i = 1, 300 do x = x + i % 7 end
	return x
end

local function outer(depth)
	if depth == 0 then
		return inner()
	end
	host_call(outer, depth - 1)
	host_work(500)
end

assert(misc.sysprof.start { mode = "C", interval = 0.5, path = arg[1] })
local started = os.clock()
repeat outer(5) inner() until os.clock() - started > tonumber(arg[2])
assert(misc.sysprof.stop())
