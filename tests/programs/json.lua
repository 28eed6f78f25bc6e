-- SPDX-License-Identifier: MIT
-- Encodes and decodes JSON.
local encode

local escapes = { ['"'] = '\\"', ["\n"] = "\\n" }

local function encode_string(s)
	local text = s:gsub('["\n]', escapes)
	return '"' .. text .. '"'
end

local function encode_list(list)
	local parts = {}
	for i, value in ipairs(list) do
		parts[i] = encode(value)
	end
	return "[" .. table.concat(parts, ",") .. "]"
end

local function encode_map(map)
	local keys, parts = {}, {}
	for key in pairs(map) do
		keys[#keys + 1] = key
	end
	table.sort(keys)
	for i, key in ipairs(keys) do
		parts[i] = encode_string(key) .. ":" .. encode(map[key])
	end
	return "{" .. table.concat(parts, ",") .. "}"
end

function encode(value)
	local kind = type(value)
	if kind == "string" then
		return (encode_string(value))
	elseif kind == "table" then
		local text = #value > 0 and encode_list(value) or encode_map(value)
		return text
	end
	return tostring(value)
end

local decode

local function skip(s, at)
	return s:match("^%s*()", at)
end

local function decode_list(s, at)
	local list = {}
	at = skip(s, at)
	while s:sub(at, at) ~= "]" do
		list[#list + 1], at = decode(s, at)
		at = skip(s, at)
		if s:sub(at, at) == "," then
			at = at + 1
		end
	end
	return list, at + 1
end

local function decode_map(s, at)
	local map = {}
	at = skip(s, at)
	while s:sub(at, at) ~= "}" do
		local key, value
		key, at = decode(s, at)
		value, at = decode(s, skip(s, at) + 1)
		map[key] = value
		at = skip(s, at)
		if s:sub(at, at) == "," then
			at = at + 1
		end
	end
	return map, at + 1
end

local function decode_string(s, at)
	local stop = s:find('"', at, true)
	return s:sub(at, stop - 1), stop + 1
end

function decode(s, at)
	at = skip(s, at)
	local c = s:sub(at, at)
	local value
	if c == "[" then
		value, at = decode_list(s, at + 1)
	elseif c == "{" then
		value, at = decode_map(s, at + 1)
	elseif c == '"' then
		value, at = decode_string(s, at + 1)
	else
		local word = s:match("^[%w%.%-]+", at)
		value, at = tonumber(word) or word == "true", at + #word
	end
	return value, at
end

return function()
	local document = { name = "x", list = {}, nested = { deep = { 1, 2, 3 } } }
	for i = 1, 40 do
		document.list[i] = { id = i, text = "item " .. i, ok = i % 2 == 0 }
	end
	local first = encode(document)
	local second = encode((decode(first, 1)))
	assert(first == second)
	return #first .. first:sub(1, 60)
end
