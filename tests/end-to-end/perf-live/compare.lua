-- SPDX-License-Identifier: MIT
-- Compares the stacks that perf recorded with those of the dump, one by one.
-- Arguments:
--   perf.txt    perf script -F ip,sym,dso --show-mmap-events
--               --show-lost-events
--   folded.txt  luajit-parse-sysprof --host-addresses
--   program     whose "expect" comments name stacks that must appear, those
--               with "expect interpreted" only where nothing is compiled
--   named.txt   luajit-parse-sysprof: the same with native symbols
--   mode        interpreted or compiled
-- Lua frames are compared by name, native ones by address. Exit status: 0 all
-- equal, 1 not.

local perf_path, folded_path, program_path, named_path, mode =
	unpack(arg, 1, 5)
local failures = 0

local function fail(...)
	failures = failures + 1
	if failures <= 10 then
		print("FAIL " .. string.format(...))
	end
end

-- Addresses are beyond what tonumber() reads exactly in one piece.
local function parse_address(text)
	local high, low = text:match("^(%x-)(%x?%x?%x?%x?%x?%x?%x?%x)$")
	return (tonumber(high, 16) or 0) * 2 ^ 32 + tonumber(low, 16)
end

local function format_address(address)
	return string.format("0x%x%08x", math.floor(address / 2 ^ 32),
		address % 2 ^ 32):gsub("^0x0+", "0x")
end

-- --- what perf recorded ---

-- perf prints addresses of an object's code as offsets in its file.
local mappings = {}

local function add_mapping(line)
	local start, bytes, offset, rights, path = line:match(
		"%[0x(%x+)%(0x(%x+)%) @ 0?x?(%x+)[^%]]*%]: (%S+) (.*)$")
	if not start or not rights:find("x", 1, true) then
		return
	end
	local list = mappings[path] or {}
	mappings[path] = list
	list[#list + 1] = {
		start = parse_address(start),
		bytes = parse_address(bytes),
		offset = parse_address(offset),
	}
end

local function absolute_address(text, path)
	local address = parse_address(text)
	for _, mapping in ipairs(mappings[path] or {}) do
		local within = address - mapping.offset
		if within >= 0 and within < mapping.bytes then
			return mapping.start + within
		end
	end
	return address
end

local function perf_frame(line)
	local address, symbol, path = line:match("^%s+(%x+) (.*) %((.-)%)$")
	if not address then
		error("perf.txt: no frame: " .. line)
	end
	if path:find("^/tmp/perf%-%d+%.map$") and symbol ~= "[unknown]" then
		return symbol, symbol
	end
	return format_address(absolute_address(address, path)), symbol
end

-- Stacks root first, and how often each was seen.
local function read_perf()
	local counts, total, lost = {}, 0, 0
	local frames = {}

	local function finish()
		if #frames == 0 then
			return
		end
		local leaf = table.remove(frames, 1)
		if leaf.symbol ~= "luajit_sysprof_sample" then
			fail("a stack's leaf is not the beacon: %s",
				leaf.symbol)
		end
		local names = {}
		for i, frame in ipairs(frames) do
			names[#frames + 1 - i] = frame.name
		end
		local stack = table.concat(names, ";")
		counts[stack] = (counts[stack] or 0) + 1
		total = total + 1
		frames = {}
	end

	for line in io.lines(perf_path) do
		if line:find("PERF_RECORD_MMAP", 1, true) then
			add_mapping(line)
		elseif line:find("PERF_RECORD_LOST", 1, true) then
			lost = lost + (tonumber(line:match("lost (%d+)")) or 0)
		elseif line:find("^%s+%x") then
			local name, symbol = perf_frame(line)
			frames[#frames + 1] = { name = name, symbol = symbol }
		elseif line == "" then
			finish()
		end
	end
	finish()
	return counts, total, lost
end

-- --- what the dump holds ---

-- How much is missing has no place in perf, which has one name for all.
local function without_count(frame)
	return (frame:gsub("^(%[.*): %d+ frames?%]$", "%1]"))
end

local function read_folded(path)
	local counts, total = {}, 0
	for line in io.lines(path) do
		local stack, count = line:match("^(.*) (%d+)$")
		if not stack then
			error(path .. ": bad line: " .. line)
		end
		stack = stack:gsub("[^;]+", without_count)
		counts[stack] = (counts[stack] or 0) + tonumber(count)
		total = total + tonumber(count)
	end
	return counts, total
end

-- --- comparison ---

local function compare(native, perf, lost)
	local equal, missing = 0, 0
	for stack, count in pairs(native) do
		local seen = perf[stack] or 0
		if seen == count then
			equal = equal + 1
		elseif seen > count then
			fail("perf has %d, the dump %d of %s", seen, count,
				stack)
		else
			missing = missing + count - seen
			if missing > lost then
				fail("perf has %d, the dump %d of %s", seen,
					count, stack)
			end
		end
	end
	for stack, count in pairs(perf) do
		if not native[stack] then
			fail("only perf has, %d times, %s", count, stack)
		end
	end
	return equal, missing
end

-- Do the frames occur in this order, with no other Lua function between?
local function has_frames(stack, expected)
	local names, is_lua = {}, {}
	for frame in stack:gmatch("[^;]+") do
		local name = frame:match("^(.-) %S+:%d+$")
		names[#names + 1] = name or frame
		is_lua[#names] = name ~= nil
	end
	for first = 1, #names do
		local at, matched = first, 0
		while at <= #names and matched < #expected do
			if names[at] == expected[matched + 1] then
				matched = matched + 1
			elseif matched == 0 or is_lua[at] then
				break
			end
			at = at + 1
		end
		if matched == #expected then
			return true
		end
	end
	return false
end

local function is_expected(named, text)
	local expected = {}
	for frame in text:gmatch("[^> ]+") do
		expected[#expected + 1] = frame
	end
	for stack in pairs(named) do
		if has_frames(stack, expected) then
			return true
		end
	end
	return false
end

local function check_expected(named)
	local checked = 0
	for line in io.lines(program_path) do
		local when, text = line:match("^%-%- expect ?(%l*): (.*)$")
		if text and (when == "" or when == mode) then
			checked = checked + 1
			if not is_expected(named, text) then
				fail("no stack has the frames %s", text)
			end
		end
	end
	if checked == 0 then
		fail("%s expects nothing", program_path)
	end
end

local perf, perf_total, lost = read_perf()
local native, native_total = read_folded(folded_path)
local named, named_total = read_folded(named_path)
local equal, missing = compare(native, perf, lost)
local stacks = 0
for _ in pairs(native) do
	stacks = stacks + 1
end
if native_total == 0 or named_total ~= native_total then
	fail("the dump has %d samples, with symbols %d", native_total,
		named_total)
end
check_expected(named)
print(string.format("%d samples in the dump, %d in perf (%d lost by perf); "
	.. "%d of %d stacks equal, %d samples missing", native_total,
	perf_total, lost, equal, stacks, missing))
os.exit(failures == 0 and 0 or 1)
