-- SPDX-License-Identifier: MIT
-- Sorts by comparators, by hand and by the library.
local function less(a, b)
	return a.key < b.key
end

local function quick(list, low, high)
	if low >= high then
		return
	end
	local pivot, i, j = list[math.floor((low + high) / 2)], low, high
	while i <= j do
		while less(list[i], pivot) do
			i = i + 1
		end
		while less(pivot, list[j]) do
			j = j - 1
		end
		if i <= j then
			list[i], list[j] = list[j], list[i]
			i, j = i + 1, j - 1
		end
	end
	quick(list, low, j)
	quick(list, i, high)
end

local function merge(a, b)
	local result, i, j = {}, 1, 1
	while a[i] or b[j] do
		if not b[j] or (a[i] and not less(b[j], a[i])) then
			result[#result + 1], i = a[i], i + 1
		else
			result[#result + 1], j = b[j], j + 1
		end
	end
	return result
end

local function merge_sort(list, low, high)
	if low == high then
		return { list[low] }
	end
	local middle = math.floor((low + high) / 2)
	local a, b = merge_sort(list, low, middle), merge_sort(list, middle + 1, high)
	local result = merge(a, b)
	return result
end

local function items()
	local list, x = {}, 1
	for i = 1, 120 do
		x = (x * 137 + 11) % 1021
		list[i] = { key = x }
	end
	return list
end

return function()
	local a, b, c = items(), items(), items()
	quick(a, 1, #a)
	b = merge_sort(b, 1, #b)
	table.sort(c, less)
	for i = 1, #a do
		assert(a[i].key == b[i].key and b[i].key == c[i].key)
	end
	return a[1].key .. " " .. a[60].key .. " " .. a[#a].key
end
