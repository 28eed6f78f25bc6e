-- SPDX-License-Identifier: MIT
-- Lua called from library functions and the other way round, several deep.
-- expect: sorting > table.sort > compare > burn
-- expect: replacing > string.gsub > replace > burn
-- expect: guarding > pcall > risky > burn
-- expect: guarding > xpcall > nested > pcall > burn
-- expect: printing > describe > burn
-- expect: loading > load > read_piece > burn

local function burn(rounds)
	local sum = 0
	for i = 1, rounds do
		sum = (sum + i % 7) % 1000003
	end
	return sum
end

local function compare(a, b)
	burn(200)
	return a < b
end

local function sorting()
	local list = {}
	for i = 1, 60 do
		list[i] = i * 7919 % 101
	end
	table.sort(list, compare)
end

local function replace(letter)
	burn(200)
	return letter:upper()
end

local function replacing()
	local text = ("abcdefghij"):rep(30)
	return (text:gsub("%a", replace))
end

local function risky(i)
	burn(200)
	if i % 5 == 0 then
		error("every fifth call fails")
	end
end

local function nested()
	local good = pcall(burn, 2000)
	return good
end

local function guarding()
	for i = 1, 200 do
		pcall(risky, i)
	end
	for _ = 1, 20 do
		xpcall(nested, debug.traceback)
	end
end

local function describe()
	burn(200)
	return "a thing"
end

local thing = setmetatable({}, { __tostring = describe })

local function printing()
	local text
	for _ = 1, 200 do
		text = tostring(thing)
	end
	return text
end

local function loading()
	local count = 0
	local function read_piece()
		burn(200)
		count = count + 1
		return count <= 100 and "local a = 1 " or nil
	end
	local loaded = load(read_piece)
	return loaded
end

return function()
	sorting()
	replacing()
	guarding()
	printing()
	loading()
end
