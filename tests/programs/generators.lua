-- SPDX-License-Identifier: MIT
-- Permutations and trees by coroutines within coroutines.
local function permute(list, n)
	if n == 0 then
		coroutine.yield(list)
		return
	end
	for i = 1, n do
		list[i], list[n] = list[n], list[i]
		permute(list, n - 1)
		list[i], list[n] = list[n], list[i]
	end
end

local function permutations(n)
	local list = {}
	for i = 1, n do
		list[i] = i
	end
	return coroutine.wrap(function()
		permute(list, n)
	end)
end

local function insert(tree, value)
	if not tree then
		return { value = value }
	end
	local side = value < tree.value and "left" or "right"
	tree[side] = insert(tree[side], value)
	return tree
end

local function walk(tree)
	if tree then
		walk(tree.left)
		coroutine.yield(tree.value)
		walk(tree.right)
	end
end

local function values(tree)
	return coroutine.wrap(function()
		walk(tree)
	end)
end

return function()
	local count, sum, tree = 0, 0, nil
	for list in permutations(5) do
		count = count + 1
		sum = sum + list[1] * list[5]
	end
	for i = 1, 60 do
		tree = insert(tree, i * 37 % 101)
	end
	local last = -1
	for value in values(tree) do
		assert(value > last)
		last = value
	end
	return count .. " " .. sum .. " " .. last
end
