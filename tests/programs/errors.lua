-- SPDX-License-Identifier: MIT
-- Errors that are thrown, caught, told and thrown again.
local function check(n)
	if n % 5 == 0 then
		error("five", 0)
	elseif n % 7 == 0 then
		error({ code = n })
	end
	return n
end

local function deeper(n, depth)
	if depth == 0 then
		local value = check(n)
		return value
	end
	local value = deeper(n, depth - 1)
	return value + 1
end

local function handler(e)
	return type(e) == "table" and e.code or e
end

local function guarded(n)
	local ok, value = pcall(deeper, n, n % 6)
	if ok then
		return value
	end
	local again
	ok, again = xpcall(function()
		error(value, 0)
	end, handler)
	assert(not ok)
	return again
end

return function()
	local parts = {}
	for i = 1, 60 do
		parts[i] = tostring(guarded(i))
	end
	return table.concat(parts, " ")
end
