-- SPDX-License-Identifier: MIT
-- Ten Lua functions deep, then a comparator called from C.
local function spin(n)
	local x = 0
	for i = 1, n do
		x = x + i % 7
	end
	return x
end

local function less(a, b)
	spin(100)
	return a < b
end

local function descend(depth)
	if depth == 0 then
		local t = {}
		for i = 1, 30 do
			t[i] = (i * 7919) % 101
		end
		table.sort(t, less)
		return spin(5000)
	end
	local r = descend(depth - 1)
	return r + 1
end

return function()
	for _ = 1, 20 do
		descend(10)
	end
end
