-- SPDX-License-Identifier: MIT
-- Shortest paths with a heap.
local function push(heap, item)
	local i = #heap + 1
	heap[i] = item
	while i > 1 do
		local parent = math.floor(i / 2)
		if heap[parent].distance <= heap[i].distance then
			break
		end
		heap[parent], heap[i] = heap[i], heap[parent]
		i = parent
	end
end

local function sink(heap, i)
	while true do
		local child = i * 2
		if child > #heap then
			return
		end
		if heap[child + 1] and
			heap[child + 1].distance < heap[child].distance then
			child = child + 1
		end
		if heap[i].distance <= heap[child].distance then
			return
		end
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	end
end

local function pop(heap)
	local top = heap[1]
	heap[1] = heap[#heap]
	heap[#heap] = nil
	if #heap > 0 then
		sink(heap, 1)
	end
	return top
end

local function edges(node)
	return { node * 2 % 97, node * 3 % 97, (node + 1) % 97 }
end

local function search(from)
	local distances, heap = { [from] = 0 }, {}
	push(heap, { node = from, distance = 0 })
	while #heap > 0 do
		local item = pop(heap)
		for i, node in ipairs(edges(item.node)) do
			local distance = item.distance + i * 3
			if not distances[node] or distance < distances[node] then
				distances[node] = distance
				push(heap, { node = node, distance = distance })
			end
		end
	end
	return distances
end

return function()
	local distances = search(1)
	local sum = 0
	for i = 0, 96 do
		sum = sum + (distances[i] or 0)
	end
	return tostring(sum)
end
