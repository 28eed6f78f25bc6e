-- SPDX-License-Identifier: MIT
-- Compiles a loop in chunks whose names some viewer trips over, and runs each of
-- them for a while. Argument: the dump to write.

local sysprof = require("misc").sysprof
local names = {
	"@plain.lua", "=(load)", "@(b).lua", "@x(y).lua", "@semi;colon.lua",
	"@quo\"te's.lua", "@offset.lua+0x12ab", "=offset+0x12ab", "=ends_[k]",
	"@two\nlines.lua", "@broken\255utf.lua", "@caf\195\169.lua", "=x",
	"@to->there.lua", "@sp  ace .lua", "@bell\7.lua", "return (f)(); -- 'x'",
}

jit.off(true, true)
assert(sysprof.start { mode = "L", interval = 1000, perf = "map",
	path = arg[1] })
for _, name in ipairs(names) do
	local work = assert(loadstring([[
		local finish, sum = os.clock() + 0.1, 0
		repeat
			for i = 1, 100000 do
				sum = sum + i % 7
			end
		until os.clock() > finish
		return sum
	]], name))
	work()
end
assert(sysprof.stop())
