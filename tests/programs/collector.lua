-- SPDX-License-Identifier: MIT
-- Garbage, weak tables and finalizers.
local finalized = 0

local function finalize()
	finalized = finalized + 1
end

local function list(n)
	local head
	for i = 1, n do
		head = { value = i, next = head }
	end
	return head
end

local function length(head)
	local n = 0
	while head do
		n, head = n + 1, head.next
	end
	return n
end

local function proxies(n)
	for _ = 1, n do
		getmetatable(newproxy(true)).__gc = finalize
	end
end

local cache = setmetatable({}, { __mode = "v" })

local function cached(i)
	local value = cache[i]
	if not value then
		value = { i, tostring(i) }
		cache[i] = value
	end
	return value
end

local function run()
	local total = 0
	for i = 1, 20 do
		total = total + length((list(50)))
		local value = cached(i)
		total = total + value[1]
	end
	proxies(5)
	return tostring(total)
end

return run, { finalize }
