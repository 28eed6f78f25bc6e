-- SPDX-License-Identifier: MIT
-- Three functions that do 2, 3 and 5 parts of the same work.
--
-- Expected: `twenty` is in 20 % of the samples, `thirty` in 30 % and `fifty`
-- in 50 %, each below `work` and above `burn`, with the JIT compiler on or off.

local seconds = tonumber(os.getenv "EXAMPLE_SECONDS") or 3

local function burn(parts)
	local sum = 0
	for i = 1, parts * 20000 do
		sum = (sum + i % 7) % 1000003
	end
	return sum
end

-- The sums are kept: `return burn(2)` would be a tail call, which replaces the
-- caller's frame.
local function twenty()
	local sum = burn(2)
	return sum
end

local function thirty()
	local sum = burn(3)
	return sum
end

local function fifty()
	local sum = burn(5)
	return sum
end

local function work()
	return twenty() + thirty() + fifty()
end

local finish = os.clock() + seconds
repeat
	work()
until os.clock() >= finish
