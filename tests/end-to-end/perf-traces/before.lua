-- SPDX-License-Identifier: MIT
-- Loops that are compiled before the profile starts, and run on under it. Arguments:
-- the file of the dump, seconds of CPU time, and "keep", or "flush", which has LuaJIT
-- compile them anew.

local dump, seconds, how = arg[1], tonumber(arg[2]), arg[3]
local sysprof = require("misc").sysprof

local loops = {}
for i = 1, 8 do
	loops[i] = assert(loadstring([[
		local sum = 0
		for i = 1, 200000 do
			sum = sum + i % ]] .. i + 2 .. [[

		end
		return sum
	]], "@before_" .. i .. ".lua"))
end
local function run()
	for i = 1, #loops do
		loops[i]()
	end
end
jit.off(run)
run()

assert(sysprof.start { mode = "L", interval = 1000, perf = "jitdump",
	path = dump })
if how == "flush" then
	jit.flush()
end
local finish = os.clock() + seconds
repeat
	run()
until os.clock() >= finish
assert(sysprof.stop())
