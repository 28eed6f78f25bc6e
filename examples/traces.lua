-- SPDX-License-Identifier: MIT
-- Number crunching that LuaJIT compiles: the Mandelbrot set.
--
-- Expected: nearly all samples in state TRACE, in `escape` below `row` below
-- `picture`, although the compiled code has no Lua frames. With `luajit -joff`
-- the same stacks, in state INTERP.

local seconds = tonumber(os.getenv "EXAMPLE_SECONDS") or 3
local size, limit = 200, 200

local function escape(cr, ci)
	local r, i = 0, 0
	for step = 1, limit do
		local r2, i2 = r * r, i * i
		if r2 + i2 > 4 then
			return step
		end
		r, i = r2 - i2 + cr, 2 * r * i + ci
	end
	return limit
end

local function row(y)
	local steps = 0
	for x = 0, size - 1 do
		steps = steps + escape(x * 3 / size - 2, y * 3 / size - 1.5)
	end
	return steps
end

local function picture()
	local steps = 0
	for y = 0, size - 1 do
		steps = steps + row(y)
	end
	return steps
end

local finish = os.clock() + seconds
repeat
	assert(picture() > size * size)
until os.clock() >= finish
