-- SPDX-License-Identifier: MIT
-- Strings and much garbage: library functions in C, and the collector.
-- expect: function > joining
-- expect: function > formatting
-- expect interpreted: joining > table.concat
-- expect interpreted: formatting > string.format
-- expect interpreted: searching > string.find
-- expect: function > littering

local function joining()
	local parts = {}
	for i = 1, 2000 do
		parts[#parts + 1] = "part " .. i
	end
	return #table.concat(parts, ",")
end

local function formatting()
	local text
	for i = 1, 1000 do
		text = string.format("%d %s %g %q", i, "text", i / 7, "a\nb")
	end
	return text
end

local haystack = ("x"):rep(3000) .. "needle"

local function searching()
	local at
	for _ = 1, 30 do
		at = string.find(haystack, "n[e]+dle")
	end
	return at
end

local function littering()
	local last
	for i = 1, 5000 do
		last = { { i }, tostring(i), function() return last end }
	end
	return last
end

return function()
	joining()
	formatting()
	searching()
	littering()
end
