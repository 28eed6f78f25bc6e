-- SPDX-License-Identifier: MIT
-- Coroutines, also within each other, and loops that are compiled.
-- expect: resuming > coroutine.resume > produce > burn
-- expect: wrapping > outer > inner > burn
-- expect: function > number_loop
-- expect: function > table_loop

local function burn(rounds)
	local sum = 0
	for i = 1, rounds do
		sum = (sum + i % 7) % 1000003
	end
	return sum
end

local function produce(count)
	for i = 1, count do
		burn(300)
		coroutine.yield(i)
	end
end

local function resuming()
	local thread = coroutine.create(produce)
	while coroutine.resume(thread, 200) do
		if coroutine.status(thread) == "dead" then
			break
		end
	end
end

local function inner()
	for _ = 1, 20 do
		burn(300)
		coroutine.yield()
	end
end

local function outer()
	for _ = 1, 10 do
		local step = coroutine.wrap(inner)
		for _ = 1, 20 do
			step()
		end
		coroutine.yield()
	end
end

local function wrapping()
	local step = coroutine.wrap(outer)
	for _ = 1, 10 do
		step()
	end
end

local function number_loop()
	local x = 0.5
	for i = 1, 200000 do
		x = x * 1.0000001 + i % 3
	end
	return x
end

local list = {}
for i = 1, 1000 do
	list[i] = i
end

local function table_loop()
	local sum = 0
	for _ = 1, 100 do
		for i = 1, #list do
			sum = sum + list[i]
		end
	end
	return sum
end

return function()
	resuming()
	wrapping()
	number_loop()
	table_loop()
end
