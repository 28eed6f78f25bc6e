-- SPDX-License-Identifier: MIT
-- Counters, composition, currying, memoising.
local function counter(step)
	local count = 0
	return function()
		count = count + step
		return count
	end
end

local function compose(f, g)
	return function(x)
		local inner = g(x)
		local result = f(inner)
		return result
	end
end

local function curry(f, a)
	return function(b)
		local result = f(a, b)
		return result
	end
end

local function add(a, b)
	return a + b
end

local function memoise(f)
	local known = {}
	return function(n)
		local value = known[n]
		if not value then
			value = f(n)
			known[n] = value
		end
		return value
	end
end

local function map(list, f)
	local result = {}
	for i = 1, #list do
		result[i] = f(list[i])
	end
	return result
end

local function fold(list, f, start)
	for i = 1, #list do
		start = f(start, list[i])
	end
	return start
end

return function()
	local fibonacci
	fibonacci = memoise(function(n)
		if n < 2 then
			return n
		end
		local a, b = fibonacci(n - 1), fibonacci(n - 2)
		return a + b
	end)
	local total, next_number = 0, counter(3)
	for _ = 1, 100 do
		total = total + next_number()
	end
	local list = {}
	for i = 1, 50 do
		list[i] = i
	end
	local f = compose(curry(add, 7), curry(add, 8))
	total = total + fold(map(list, f), add, 0)
	return total .. " " .. fibonacci(40)
end
