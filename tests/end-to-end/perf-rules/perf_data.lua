-- SPDX-License-Identifier: MIT
-- Writes a perf.data from nothing. Arguments: the file, a process id, the size of
-- the event attribute, and what else is in it, one by one:
--   map NAME PROT        a mapping of a page at the next address, with a sample
--   marker PATH          a mapping of a file, without a sample
--   code ADDRESS TIME    a sample, and no mapping
--   depth COUNT          a sample in the newest mapping, of so many frames
--   bytes COUNT          a sample there of a second event of that name
-- Prints the address of each mapping that has a sample.

local path, pid, attribute_bytes = arg[1], tonumber(arg[2]), tonumber(arg[3])
local ffi = require("ffi")
local bit = require("bit")

local IP, TID, TIME, CALLCHAIN = 0x1, 0x2, 0x4, 0x20
local PERIOD, IDENTIFIER = 0x100, 0x10000
local MMAP, COMM, SAMPLE_ID_ALL = 8, 9, 18 -- bits of flags
local MMAP2, USE_CLOCKID = 23, 25
local CLOCKID_END = 96 -- attributes of that size have one
local RECORD_COMM, RECORD_SAMPLE, RECORD_MMAP2 = 3, 9, 10
local CONTEXT_USER = 0xfffffffffffffe00ULL
local FEATURE_EVENT_DESC = 12
local NAME_ALIGN = 64
local PAGE = 4096

local function pack(ctype, ...)
	local count = select("#", ...)
	local values = ffi.new(ctype .. "[?]", count, ...)
	return ffi.string(values, ffi.sizeof(values))
end

local function u32(...) return pack("uint32_t", ...) end
local function u64(...) return pack("uint64_t", ...) end

local function padded(text, alignment)
	local size = #text + 1
	return text .. ("\0"):rep(alignment - (size - 1) % alignment)
end

local function attribute()
	local flags = 0
	for _, number in ipairs { MMAP, COMM, SAMPLE_ID_ALL, MMAP2 } do
		flags = bit.bor(flags, bit.lshift(1, number))
	end
	if attribute_bytes >= CLOCKID_END then
		flags = bit.bor(flags, bit.lshift(1, USE_CLOCKID))
	end
	local text = u32(1, attribute_bytes) .. u64(0, 1000000, IP + TID + TIME
		+ CALLCHAIN + PERIOD + IDENTIFIER, 0, flags) .. u32(0, 0) .. u64(0)
	text = text .. ("\0"):rep(92 - #text) .. u32(1) -- the monotonic clock
	return (text .. ("\0"):rep(128)):sub(1, attribute_bytes)
end

local TIME_ID, BYTES_ID = 1, 2
local time, address = 1000, 0x7f0000000000
local data = {}

local function record(kind, misc, body)
	data[#data + 1] = u32(kind) .. pack("uint16_t", misc, 8 + #body) .. body
end

local function trailer()
	return u32(pid, pid) .. u64(time, TIME_ID)
end

local function mapping(start, name, protection)
	record(RECORD_MMAP2, 2, u32(pid, pid) .. u64(start, PAGE, 0) .. u32(0, 0)
		.. u64(0, 0) .. u32(protection, 2) .. padded(name, 8) .. trailer())
end

local function sample(id, ip, when, period, depth)
	local chain = { CONTEXT_USER }
	for _ = 1, depth do
		chain[#chain + 1] = ip
	end
	record(RECORD_SAMPLE, 2, u64(id, ip) .. u32(pid, pid) .. u64(when, period)
		.. u64(#chain, unpack(chain)))
end

local PROTECTIONS = { ["r-x"] = 5, ["rw-"] = 3, ["rwx"] = 7 }
local commands = {
	map = function(name, protection)
		address = address + 2 * PAGE
		mapping(address, name, PROTECTIONS[protection])
		sample(TIME_ID, address + 16, time + 1, 1000000, 1)
		print(("%x"):format(address))
		return 2
	end,
	marker = function(name)
		mapping(address + 1024 * PAGE, name, PROTECTIONS["r-x"])
		return 1
	end,
	code = function(start, when)
		sample(TIME_ID, tonumber(start), tonumber(when), 1000000, 1)
		return 2
	end,
	depth = function(count)
		sample(TIME_ID, address + 16, time + 1, 1000000, tonumber(count))
		return 1
	end,
	bytes = function(count)
		sample(BYTES_ID, address + 16, time + 1, tonumber(count), 1)
		return 1
	end,
}

record(RECORD_COMM, 0, u32(pid, pid) .. padded("generated", 8) .. trailer())
local at = 4
while arg[at] do
	time = time + 1000
	at = at + 1 + commands[arg[at]](arg[at + 1], arg[at + 2])
end

local ids = u64(TIME_ID, BYTES_ID)
local HEADER_BYTES = 104
local attributes_at = HEADER_BYTES + #ids
local attributes = attribute() .. u64(HEADER_BYTES, 8)
	.. attribute() .. u64(HEADER_BYTES + 8, 8)
local body = table.concat(data)
local data_at = attributes_at + #attributes

local function described(name, id)
	name = padded(name, NAME_ALIGN)
	return attribute() .. u32(1, #name) .. name .. u64(id)
end

local description = u32(2, attribute_bytes) .. described("cpu-clock", TIME_ID)
	.. described("bytes", BYTES_ID)

local file = assert(io.open(path, "wb"))
file:write("PERFILE2", u64(HEADER_BYTES, attribute_bytes + 16, attributes_at,
	#attributes, data_at, #body, 0, 0, bit.lshift(1, FEATURE_EVENT_DESC), 0,
	0, 0), ids, attributes, body,
	u64(data_at + #body + 16, #description), description)
file:close()
