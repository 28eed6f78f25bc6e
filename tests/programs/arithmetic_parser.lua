-- SPDX-License-Identifier: MIT
-- A recursive descent parser and evaluator of arithmetic.
local text, position

local function peek()
	position = text:find("%S", position) or #text + 1
	return text:sub(position, position)
end

local expression

local function number()
	local digits = text:match("^%d+", position)
	position = position + #digits
	return tonumber(digits)
end

local function factor()
	local c = peek()
	if c == "(" then
		position = position + 1
		local value = expression()
		assert(peek() == ")")
		position = position + 1
		return value
	elseif c == "-" then
		position = position + 1
		local value = factor()
		return -value
	end
	return number()
end

local function term()
	local value = factor()
	while true do
		local c = peek()
		if c ~= "*" and c ~= "/" then
			return value
		end
		position = position + 1
		local right = factor()
		value = c == "*" and value * right or value / right
	end
end

function expression()
	local value = term()
	while true do
		local c = peek()
		if c ~= "+" and c ~= "-" then
			return value
		end
		position = position + 1
		local right = term()
		value = c == "+" and value + right or value - right
	end
end

local function evaluate(source)
	text, position = source, 1
	local value = expression()
	return value
end

return function()
	local sum = 0
	for i = 1, 200 do
		sum = sum + evaluate(i .. " * (3 + 4 * -2) - 10 / (5 - 3)")
	end
	return string.format("%.2f", sum)
end
