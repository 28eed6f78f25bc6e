-- SPDX-License-Identifier: MIT
-- Machine code of traces in the map file and the jitdump, against what LuaJIT's
-- own jit.util says of them. Needs no perf. Argument: a directory for files.

jit.off(true, true) -- only what compile() loads is compiled

local directory = arg[1]
local sysprof = require("misc").sysprof
local jutil = require("jit.util")
local ffi = require("ffi")
ffi.cdef [[
	int fork(void);
	int waitpid(int pid, int *status, int options);
	int getpid(void);
	void _exit(int status);
]]

local failures = 0
local function check(condition, ...)
	if not condition then
		failures = failures + 1
		print("FAIL line " .. debug.getinfo(2, "l").currentline .. ": "
			.. string.format(...))
	end
	return condition
end

local function map_path(pid)
	return "/tmp/perf-" .. (pid or ffi.C.getpid()) .. ".map"
end

local function jitdump_path(pid)
	return directory .. "/jit-" .. (pid or ffi.C.getpid()) .. ".dump"
end

local function start(perf, unwind)
	assert(sysprof.start { mode = "L", interval = 1000, perf = perf,
		perf_dir = perf == "jitdump" and directory or nil,
		perf_unwind = unwind,
		path = directory .. "/dump" })
end

local function stop()
	assert(sysprof.stop())
end

local function exists(path)
	local file = io.open(path)
	if file then
		file:close()
	end
	return file ~= nil
end

-- --- what LuaJIT says ---

-- Addresses have 47 bits: a number holds them.
local function live_traces()
	local traces, count = {}, 0
	for number = 1, 65535 do
		local code, address = jutil.tracemc(number)
		if code then
			if address < 0 then
				address = address + 2 ^ 32
			end
			traces[number] = { address = address, bytes = #code,
				code = code }
			count = count + 1
		end
	end
	return traces, count
end

-- --- what is in the files ---

local function read_map(pid)
	local lines = {}
	for line in io.lines(map_path(pid)) do
		local start, bytes, name = line:match("^(%x+) (%x+) (.+)$")
		assert(start, line)
		start = tonumber(start:sub(1, -9), 16) * 2 ^ 32
			+ tonumber(start:sub(-8), 16)
		lines[#lines + 1] = { address = start,
			bytes = tonumber(bytes, 16), name = name }
	end
	return lines
end

local function check_no_overlaps(lines)
	table.sort(lines, function(a, b) return a.address < b.address end)
	for i = 2, #lines do
		check(lines[i - 1].address + lines[i - 1].bytes
			<= lines[i].address, "%s and %s overlap",
			lines[i - 1].name, lines[i].name)
	end
end

-- Every live trace has its line, and none has the number of another.
local function check_map(pid)
	local lines, by_address = read_map(pid), {}
	check_no_overlaps(lines)
	for _, line in ipairs(lines) do
		by_address[line.address] = line
	end
	local traces, count = live_traces()
	for number, trace in pairs(traces) do
		local line = by_address[trace.address]
		if check(line, "no line for trace %d", number) then
			check(line.bytes == trace.bytes,
				"trace %d has %d bytes, its line %d", number,
				trace.bytes, line.bytes)
			check(line.name:find("^TRACE_" .. number .. " "),
				"trace %d is named %s", number, line.name)
		end
	end
	return count, lines
end

local function u32(text, at)
	local a, b, c, d = text:byte(at + 1, at + 4)
	return a + b * 2 ^ 8 + c * 2 ^ 16 + d * 2 ^ 24
end

local function u64(text, at)
	return u32(text, at) + u32(text, at + 4) * 2 ^ 32
end

-- The code records of a jitdump, oldest first.
local function read_jitdump(pid)
	local file = assert(io.open(jitdump_path(pid), "rb"))
	local text = file:read("*a")
	file:close()
	local records, at, last_time = {}, 40, u64(text, 24)
	local lines, rules
	check(u32(text, 20) == (pid or ffi.C.getpid()), "wrong pid")
	while at < #text do
		local id, bytes = u32(text, at), u32(text, at + 4)
		if id == 2 then
			lines = u64(text, at + 24)
		elseif id == 4 then
			rules = u64(text, at + 32) -- mapped bytes
		else
			assert(id == 0, "record " .. id)
			local name = text:match("^%Z+", at + 57)
			records[#records + 1] = {
				pid = u32(text, at + 16),
				time = u64(text, at + 8),
				address = u64(text, at + 32),
				bytes = u64(text, at + 40),
				index = u64(text, at + 48),
				name = name,
				code = text:sub(at + 56 + #name + 2, at + bytes),
				lines = lines, rules = rules,
			}
			lines, rules = nil, nil
		end
		check(u64(text, at + 8) >= last_time or id ~= 0,
			"a record is older than the dump")
		at = at + bytes
	end
	check(at == #text, "the last record is torn")
	return records
end

-- --- work ---

local serial = 0
local kept = {} -- the traces of a chunk that is collected go, too

-- Compiles count loops, each in a chunk of its own with a name of its own.
local function compile(count)
	for _ = 1, count do
		serial = serial + 1
		local chunk = assert(loadstring([[
			local sum = 0
			for i = 1, 200 do
				sum = sum + i % ]] .. serial % 13 + 2 .. [[

			end
			return sum
		]], "@" .. "chunk_" .. serial .. ".lua"))
		kept[serial] = chunk
		chunk()
	end
end

local function has_name(lines, pattern)
	for _, line in ipairs(lines) do
		if line.name:find(pattern) then
			return true
		end
	end
	return false
end

-- --- tests ---

local function test_before_and_after_start()
	compile(5)
	start(true)
	compile(5)
	stop()
	local count, lines = check_map()
	check(count >= 10, "only %d traces", count)
	check(has_name(lines, "^TRACE_%d+ chunk_1%.lua:2$"), "chunk_1.lua")
	check(has_name(lines, "^TRACE_%d+ chunk_10%.lua:2$"), "chunk_10.lua")
	check(has_name(lines, "^%[trace exits%]$"), "no exits")
end

local function test_second_start_adds_nothing_twice()
	start(true)
	stop()
	local _, lines = check_map()
	local names = {}
	for _, line in ipairs(lines) do
		if line.name:find(" chunk_", 1, true) then
			check(not names[line.name], "%s twice", line.name)
			names[line.name] = true
		end
	end
end

local function test_flush()
	start(true)
	compile(5)
	for _ = 1, 20 do
		jit.flush()
		compile(10)
	end
	stop()
	local count, lines = check_map()
	check(count >= 10, "only %d traces", count)
	check(#lines < 1000, "%d lines", #lines)
end

local function test_flush_between_profiles()
	jit.flush()
	compile(10)
	start(true)
	stop()
	check_map()
end

local function test_lines()
	start("lines")
	compile(3)
	local name = "chunk_" .. serial
	stop()
	local lines = read_map()
	check_no_overlaps(lines)
	check(has_name(lines, "^TRACE_%d+ " .. name .. "%.lua:2 in " .. name
		.. "%.lua:3$"), "no line 3 of %s", name)
end

local function test_jitdump()
	start("jitdump")
	compile(20)
	jit.flush()
	compile(20)
	stop()
	local records, by_address = read_jitdump(), {}
	for i, record in ipairs(records) do
		check(record.index == i - 1, "index %d", record.index)
		by_address[record.address] = record -- the last one counts
	end
	local traces, count = live_traces()
	check(count >= 20, "only %d traces", count)
	for number, trace in pairs(traces) do
		local record = by_address[trace.address]
		if check(record, "no record of trace %d", number) then
			check(record.name:find("^TRACE_" .. number .. " "),
				"trace %d is named %s", number, record.name)
			check(record.bytes == trace.bytes and record.rules
				and record.lines and record.lines >= 2,
				"trace %d", number)
			-- A trace may have been patched since.
			check(#record.code == #trace.code, "code of %d", number)
		end
	end
	check_map()
end

-- The least distance from a trace that is not among those to the one above.
local function least_gap(others)
	local traces, least = {}, 2 ^ 20
	for number, trace in pairs(live_traces()) do
		trace.is_other = others[number] ~= nil
		traces[#traces + 1] = trace
	end
	table.sort(traces, function(a, b) return a.address < b.address end)
	for i = 2, #traces do
		if not traces[i - 1].is_other then
			least = math.min(least, traces[i].address
				- traces[i - 1].address - traces[i - 1].bytes)
		end
	end
	return least
end

-- Mapped rules have room of their own; without them nothing is changed.
local function test_unwind()
	for unwind, mapped in pairs { mapped = true, file = false, off = false } do
		jit.flush()
		start("jitdump", unwind)
		local others = live_traces() -- to start compiles something, too
		compile(10)
		local gap = least_gap(others)
		stop()
		check(gap >= 80 == mapped, "%s: %d bytes between traces",
			unwind, gap)
		local records = read_jitdump()
		for i = #records - 9, #records do
			local rules = records[i].rules
			if unwind == "off" then
				check(not rules, "there are rules")
			else
				check(rules and (rules > 0) == mapped,
					"%s: %s bytes are mapped", unwind,
					tostring(rules))
			end
		end
	end
end

-- The host's own function for the event: called as before, and its own to take
-- away; what it throws goes nowhere.
local function test_host_attached_before()
	local stops, flushes, arguments = 0, 0, nil
	local function host(what, number, func)
		if what == "stop" then
			stops = stops + 1
			arguments = { number, func }
		elseif what == "flush" then
			flushes = flushes + 1
		end
	end
	jit.attach(host, "trace")
	start(true)
	stops = 0 -- to start compiles something, too
	compile(4)
	jit.flush()
	check(stops == 4, "%d of 4 traces", stops)
	check(flushes == 1, "%d of 1 flush", flushes)
	check(arguments and type(arguments[1]) == "number"
		and type(arguments[2]) == "function", "arguments")
	jit.attach(host)
	compile(2)
	check(stops == 4, "called after it was detached")
	jit.attach(host, "trace")
	compile(2)
	check(stops == 6, "not called after it was attached again")
	stop()
	compile(2)
	check(stops == 8, "not called after the profile")
	jit.attach(host)
	compile(1)
	check(stops == 8, "called for ever")
end

local function test_host_keeps_its_function()
	local stops = 0
	local function host(what)
		stops = stops + (what == "stop" and 1 or 0)
	end
	jit.attach(host, "trace")
	start(true)
	stops = 0
	compile(1)
	stop()
	compile(1)
	check(stops == 2, "%d of 2 traces", stops)
	start(true)
	jit.attach(host) -- while ours is in front
	stop()
	stops = 2
	compile(1)
	check(stops == 2, "came back after it was detached")
end

local function has_record(names, chunk)
	for name in pairs(names) do
		if name:find(" " .. chunk .. ".lua:2", 1, true) then
			return true
		end
	end
	return false
end

-- In the child: files of its own, with what the parent had and what is its own.
local function child_compiles(perf)
	compile(3)
	local count = check_map(ffi.C.getpid())
	check(count >= 3, "only %d traces in the child", count)
	if perf == "jitdump" then
		local records = read_jitdump()
		local names = {}
		for _, record in ipairs(records) do
			check(record.pid == ffi.C.getpid(), "a parent's record")
			names[record.name] = true
		end
		check(has_record(names, "chunk_" .. serial - 5),
			"what the parent compiled is missing")
		os.remove(jitdump_path())
	end
	os.remove(map_path())
end

local function in_child(work)
	io.stdout:flush()
	local pid = ffi.C.fork()
	if pid == 0 then
		failures = 0
		local ok, message = pcall(work)
		check(ok, "%s", tostring(message))
		io.stdout:flush()
		ffi.C._exit(failures > 0 and 1 or 0)
	end
	local status = ffi.new("int[1]")
	ffi.C.waitpid(pid, status, 0)
	check(status[0] == 0, "the child failed")
	return pid
end

local function test_fork(perf)
	jit.flush()
	start(perf)
	compile(3)
	in_child(function() child_compiles(perf) end)
	compile(1)
	local quiet = in_child(function() end)
	check(not exists(map_path(quiet)), "a child without code has a map")
	stop()
	check_map()
end

local function test_profile_in_child()
	start(true)
	compile(2)
	in_child(function()
		start(true)
		compile(3)
		stop()
		check_map()
		os.remove(map_path())
	end)
	stop()
end

test_before_and_after_start()
test_second_start_adds_nothing_twice()
test_flush()
test_flush_between_profiles()
test_lines()
test_host_attached_before()
test_host_keeps_its_function()
test_jitdump()
test_unwind()
test_fork(true)
test_fork("jitdump")
test_profile_in_child()
os.remove(map_path())
os.exit(failures == 0 and 0 or 1)
