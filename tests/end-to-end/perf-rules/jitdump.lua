-- SPDX-License-Identifier: MIT
-- Reads a jitdump, and writes it once more with a change that perf is said to
-- trip over. Arguments: a change, the file, and the one to write. "ids" prints
-- the id of each record instead, and "code" where each piece of code is, and a time
-- behind all of them.

local change, input, output = arg[1], arg[2], arg[3]
local bit = require("bit")
local ffi = require("ffi")

local CODE, LINES, CLOSE, UNWINDING = 0, 2, 3, 4
local HEADER_BYTES = 40
local CODE_BYTES, UNWINDING_BYTES = 56, 40 -- without what follows

local file = assert(io.open(input, "rb"))
local bytes = file:read("*a")
file:close()

local function u32(text, offset)
	return ffi.cast("const uint32_t *", text)[offset / 4]
end

local function u64(text, offset)
	return tonumber(ffi.cast("const uint64_t *", text)[offset / 8])
end

local function pack(ctype, ...)
	local values = ffi.new(ctype .. "[?]", select("#", ...), ...)
	return ffi.string(values, ffi.sizeof(values))
end

local function record(id, body, time)
	return pack("uint32_t", id, 16 + #body) .. time .. body
end

local records = {}
local at = HEADER_BYTES
while at + 16 <= #bytes do
	local size = u32(bytes:sub(at + 5, at + 8), 0)
	records[#records + 1] = bytes:sub(at + 1, at + size)
	at = at + size
end

local function id_of(text)
	return u32(text, 0)
end

if change == "ids" then
	for _, text in ipairs(records) do
		print(id_of(text))
	end
	return
end

if change == "code" then
	local last = records[#records]
	for _, text in ipairs(records) do
		if id_of(text) == CODE then
			print(("0x%x %d"):format(u64(text, 32), u64(last, 8) + 1000))
		end
	end
	return
end

-- Of unwinding information: its data, without what pads it.
local function parts(text)
	local size, header = u64(text, 16), u64(text, 24)
	local data = text:sub(UNWINDING_BYTES + 1, UNWINDING_BYTES + size)
	return data:sub(1, size - header), data:sub(size - header + 1)
end

local function each(id, f)
	local changed = {}
	local count = 0
	for _, text in ipairs(records) do
		if id_of(text) == id then
			count = count + 1
			text = f(text, count)
		end
		changed[#changed + 1] = text
	end
	return table.concat(changed)
end

local changes = {
	same = function()
		return table.concat(records)
	end,
	["torn"] = function()
		return table.concat(records):sub(1, -8)
	end,
	["closed"] = function()
		return table.concat(records) ..
			record(CLOSE, "", records[#records]:sub(9, 16))
	end,
	["closed early"] = function()
		return each(CODE, function(text, count)
			return count == 2 and
				text .. record(CLOSE, "", text:sub(9, 16)) or text
		end)
	end,
	["unknown record"] = function()
		return each(CODE, function(text)
			return text .. record(99, "12345678", text:sub(9, 16))
		end)
	end,
	["padded"] = function()
		return each(CODE, function(text)
			return text:sub(1, 4) .. pack("uint32_t", #text + 16) ..
				text:sub(9) .. ("\0"):rep(16)
		end)
	end,
	["no rules"] = function()
		return each(UNWINDING, function() return "" end)
	end,
	["rules not mapped"] = function()
		return each(UNWINDING, function(text)
			return text:sub(1, 32) .. pack("uint64_t", 0) ..
				text:sub(41)
		end)
	end,
	["header first"] = function()
		return each(UNWINDING, function(text)
			local frame, header = parts(text)
			return text:sub(1, UNWINDING_BYTES) .. header .. frame ..
				text:sub(UNWINDING_BYTES + #frame + #header + 1)
		end)
	end,
	-- As if the frame were two words smaller. The number is of two bytes.
	["wrong frame"] = function()
		return each(UNWINDING, function(text)
			return (text:gsub("(\12\7)(.)", function(start, size)
				return start ..
					string.char(bit.bxor(size:byte(), 16))
			end, 1))
		end)
	end,
	["no lines"] = function()
		return each(LINES, function() return "" end)
	end,
	["same file"] = function()
		return each(LINES, function(text)
			local first = true
			local body = text:sub(17):gsub("spin%.lua%z", function(name)
				local given = first and name or "\255\0"
				first = false
				return given
			end)
			return record(LINES, body, text:sub(9, 16))
		end)
	end,
}

local body = assert(changes[change], change)()
local out = assert(io.open(output, "wb"))
out:write(bytes:sub(1, HEADER_BYTES), body)
out:close()
