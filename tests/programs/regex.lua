-- SPDX-License-Identifier: MIT
-- A backtracking matcher of regular expressions.
local match_here

local function match_star(c, regex, at, text, from)
	local i = from
	while true do
		if match_here(regex, at, text, i) then
			return true
		end
		if i > #text or (c ~= "." and text:sub(i, i) ~= c) then
			return false
		end
		i = i + 1
	end
end

function match_here(regex, at, text, from)
	if at > #regex then
		return true
	end
	local c = regex:sub(at, at)
	if regex:sub(at + 1, at + 1) == "*" then
		local found = match_star(c, regex, at + 2, text, from)
		return found
	end
	if c == "$" and at == #regex then
		return from > #text
	end
	if from <= #text and (c == "." or c == text:sub(from, from)) then
		return match_here(regex, at + 1, text, from + 1)
	end
	return false
end

local function matches(regex, text)
	if regex:sub(1, 1) == "^" then
		local found = match_here(regex, 2, text, 1)
		return found
	end
	for i = 1, #text + 1 do
		if match_here(regex, 1, text, i) then
			return true
		end
	end
	return false
end

return function()
	local results = {}
	for _, regex in ipairs { "^a*b$", "a.*z", "x*yz", "^q", "c*d*e*f$" } do
		for _, text in ipairs { "aaab", "abcz", "xxxyz", "cddeef", "none" } do
			results[#results + 1] = matches(regex, text) and 1 or 0
		end
	end
	return table.concat(results)
end
