-- SPDX-License-Identifier: MIT
-- Compiles functions at run time, again and again.
local function generate(i)
	return ("local a = ... local function f(x) local y = x + %d " ..
		"return y end local s = 0 for i = 1, 20 do s = s + f(i) end " ..
		"return s + a"):format(i)
end

local function compile(i)
	local f = assert(loadstring(generate(i), "=loaded.lua"))
	return f
end

local function run(f, i)
	local value = f(i)
	return value
end

return function()
	local sum = 0
	for i = 1, 40 do
		sum = sum + run(compile(i), i)
	end
	return tostring(sum)
end
