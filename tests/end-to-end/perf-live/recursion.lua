-- SPDX-License-Identifier: MIT
-- Recursion: one function, two that call each other, and a tree.
-- expect: function > fib > fib > fib
-- expect: function > is_even > is_odd > is_even
-- expect: function > depth_of > depth_of > depth_of > depth_of
-- expect: _start > main > lua_pcall

local function fib(n)
	if n < 2 then
		return n
	end
	return fib(n - 1) + fib(n - 2)
end

local is_odd

local function is_even(n)
	if n == 0 then
		return true
	end
	local answer = is_odd(n - 1)
	return answer
end

is_odd = function(n)
	if n == 0 then
		return false
	end
	local answer = is_even(n - 1)
	return answer
end

local function grow(levels)
	if levels == 0 then
		return nil
	end
	return { grow(levels - 1), grow(levels - 1) }
end

local function depth_of(node)
	local deepest = 0
	for i = 1, #node do
		local depth = depth_of(node[i])
		if depth > deepest then
			deepest = depth
		end
	end
	return deepest + 1
end

local tree = grow(12)

return function()
	assert(fib(15) == 610)
	for _ = 1, 100 do
		assert(is_even(60))
	end
	assert(depth_of(tree) == 12)
end
