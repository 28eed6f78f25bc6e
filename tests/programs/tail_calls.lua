-- SPDX-License-Identifier: MIT
-- A state machine of tail calls.
local states = {}
local log

local function note(c)
	log[#log + 1] = c
end

function states.start(text, i)
	local c = text:sub(i, i)
	if c == "" then
		return i
	elseif c:match("%d") then
		return states.number(text, i)
	end
	return states.word(text, i)
end

function states.number(text, i)
	note("n")
	while text:sub(i, i):match("%d") do
		i = i + 1
	end
	return states.start(text, i)
end

function states.word(text, i)
	note("w")
	while text:sub(i, i):match("%a") do
		i = i + 1
	end
	return states.space(text, i)
end

function states.space(text, i)
	while text:sub(i, i) == " " do
		i = i + 1
	end
	return states.start(text, i)
end

local function is_odd(n)
	if n == 0 then
		return false
	end
	return not states.is_even(n - 1)
end

function states.is_even(n)
	if n == 0 then
		return true
	end
	local odd = is_odd(n - 1)
	return odd
end

return function()
	log = {}
	local last = states.start(("abc 12 x9 "):rep(20), 1)
	local even = states.is_even(30)
	return last .. table.concat(log) .. tostring(even)
end
