-- SPDX-License-Identifier: MIT
-- Builds text by every means.
local function by_concatenation(n)
	local s = ""
	for i = 1, n do
		s = s .. i .. ","
	end
	return s
end

local function by_table(n)
	local parts = {}
	for i = 1, n do
		parts[#parts + 1] = i
		parts[#parts + 1] = ","
	end
	return (table.concat(parts))
end

local function by_format(n)
	local parts = {}
	for i = 1, n do
		parts[i] = string.format("%d,", i)
	end
	return (table.concat(parts))
end

local function reverse_words(s)
	local words = {}
	for word in s:gmatch("%d+") do
		table.insert(words, 1, word:reverse())
	end
	return (table.concat(words, " "))
end

return function()
	local a, b, c = by_concatenation(150), by_table(150), by_format(150)
	assert(a == b and b == c)
	local r = reverse_words(a)
	local upper = r:gsub("%d", function(d)
		return string.char(65 + d)
	end)
	return #r .. upper:sub(1, 40)
end
