-- SPDX-License-Identifier: MIT
-- Functions of any number of arguments.
local function sum(...)
	local total = 0
	for i = 1, select("#", ...) do
		total = total + (select(i, ...))
	end
	return total
end

local function pack(...)
	return { n = select("#", ...), ... }
end

local function forward(f, ...)
	local result = f(...)
	return result
end

local function rotate(n, first, ...)
	if n == 0 then
		return first, ...
	end
	return rotate(n - 1, ..., first)
end

local function bind(f, ...)
	local bound = pack(...)
	return function(last)
		local value = f(last, unpack(bound, 1, bound.n))
		return value
	end
end

return function()
	local total = 0
	for i = 1, 80 do
		total = total + forward(sum, i, 2, 3, 4)
		local packed = pack(rotate(i % 3, 1, 2, 3))
		total = total + packed.n
		local f = bind(sum, 5, 6)
		total = total + f(i)
	end
	return tostring(total)
end
