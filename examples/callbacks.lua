-- SPDX-License-Identifier: MIT
-- Lua functions that run below library functions and in coroutines.
--
-- Expected: a quarter of the samples each for
--   `compare` below table.sort, called by `sorting`
--   `replace` below string.gsub, called by `replacing`
--   `produce` in a coroutine, resumed by `generating`
--   `risky`   below pcall, called by `guarding`
-- and everything below `round`.

local seconds = tonumber(os.getenv "EXAMPLE_SECONDS") or 3
local calls_a_round = 2000

local function burn()
	local sum = 0
	for i = 1, 1000 do
		sum = (sum + i % 7) % 1000003
	end
	return sum
end

local compare_calls = 0
local function compare(a, b)
	compare_calls = compare_calls + 1
	burn()
	return a < b
end

local function sorting()
	compare_calls = 0
	while compare_calls < calls_a_round do
		local numbers = {}
		for i = 1, 8 do
			numbers[i] = i * 5 % 13
		end
		table.sort(numbers, compare)
	end
end

local function replace(letter)
	burn()
	return letter
end

local letters = ("x"):rep(calls_a_round)
local function replacing()
	local text = letters:gsub(".", replace)
	return text
end

local function produce()
	for i = 1, calls_a_round do
		burn()
		coroutine.yield(i)
	end
end

local function generating()
	local thread = coroutine.create(produce)
	while coroutine.resume(thread) and coroutine.status(thread) ~= "dead" do
	end
end

local function risky(i)
	burn()
	if i % 10 == 0 then
		error("every tenth call fails")
	end
end

local function guarding()
	local failures = 0
	for i = 1, calls_a_round do
		if not pcall(risky, i) then
			failures = failures + 1
		end
	end
	return failures
end

local function round()
	sorting()
	replacing()
	generating()
	return (guarding())
end

local finish = os.clock() + seconds
repeat
	assert(round() == calls_a_round / 10)
until os.clock() >= finish
