-- SPDX-License-Identifier: MIT
-- Coroutines that take turns and send each other messages.
local queue, boxes

local function send(name, message)
	local box = boxes[name]
	box[#box + 1] = message
end

local function receive(name)
	local box = boxes[name]
	while #box == 0 do
		coroutine.yield()
	end
	return (table.remove(box, 1))
end

local function work(n)
	local x = 0
	for i = 1, n do
		x = (x * 7 + i) % 1009
	end
	return x
end

local function producer(count)
	for i = 1, count do
		local value = work(i * 10)
		send("filter", value)
		coroutine.yield()
	end
	send("filter", false)
end

local function filter()
	while true do
		local value = receive("filter")
		if not value or value % 2 == 0 then
			send("consumer", value)
		end
		if not value then
			return
		end
	end
end

local total

local function consumer()
	while true do
		local value = receive("consumer")
		if not value then
			return
		end
		total = total + value + work(50)
	end
end

local function spawn(f, ...)
	local arguments = { ... }
	queue[#queue + 1] = coroutine.create(function()
		f(unpack(arguments))
	end)
end

local function run_all()
	while #queue > 0 do
		local task = table.remove(queue, 1)
		assert(coroutine.resume(task))
		if coroutine.status(task) ~= "dead" then
			queue[#queue + 1] = task
		end
	end
end

return function()
	queue, boxes, total = {}, { filter = {}, consumer = {} }, 0
	spawn(producer, 40)
	spawn(filter)
	spawn(consumer)
	run_all()
	return tostring(total)
end
