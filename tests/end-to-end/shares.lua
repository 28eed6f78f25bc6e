-- SPDX-License-Identifier: MIT
-- Programs that know where their time goes, since each measures its own parts
-- with the thread's CPU clock. Profiles itself, then says what is expected.
--
-- usage: luajit shares.lua PROGRAM [SAMPLES [SECONDS]]
--
-- Writes sysprof.bin; prints "samples N" and lines "expect KIND NAME PERCENT",
-- where KIND is function (anywhere on the stack), line (that runs) or state.
local sysprof = require "misc.sysprof"
local ffi = require "ffi"
local program = arg[1]
local sample_count = tonumber(arg[2] or 20000)
local seconds_max = tonumber(arg[3] or 60)

ffi.cdef [[
	struct shares_time { long seconds, nanoseconds; };
	int clock_gettime(int clock, struct shares_time *time);
]]
local CLOCK_THREAD_CPUTIME_ID = 3
local time = ffi.new("struct shares_time[1]")

local function now()
	ffi.C.clock_gettime(CLOCK_THREAD_CPUTIME_ID, time)
	return tonumber(time[0].seconds) + tonumber(time[0].nanoseconds) * 1e-9
end

local spent = {}

local function add(name, start)
	spent[name] = (spent[name] or 0) + now() - start
end

-- Different functions for the profiler, the same work. Each is a chunk of its
-- own, whose name is the function's.
local function define(name)
	return assert(loadstring(([[
		local function %s(count)
			local x = 0
			for i = 1, count do
				x = x + i %% 7
			end
			return x
		end
		return %s]]):format(name, name), "=" .. name))()
end

local programs = {}

-- Functions of 20, 30 and 50 %.
local twenty, thirty, fifty = define "twenty", define "thirty", define "fifty"

function programs.functions()
	local start = now()
	twenty(40000)
	add("function twenty", start)
	start = now()
	thirty(60000)
	add("function thirty", start)
	start = now()
	fifty(100000)
	add("function fifty", start)
end

local rare, usual = define "rare", define "usual"

function programs.rare()
	local start = now()
	rare(4000)
	add("function rare", start)
	start = now()
	for _ = 1, 4 do
		usual(99000)
	end
	add("function usual", start)
end

local deep_end, flat = define "deep_end", define "flat"

local function descend(depth)
	if depth == 0 then
		return (deep_end(80000))
	end
	return 1 + descend(depth - 1)
end

function programs.recursion()
	local start = now()
	descend(120)
	add("function deep_end", start)
	start = now()
	flat(120000)
	add("function flat", start)
end

local first, second = define "first", define "second"

local function repeat_in_coroutine(name, work, count)
	return coroutine.wrap(function()
		while true do
			local start = now()
			work(count)
			add(name, start)
			coroutine.yield()
		end
	end)
end
local resume_first = repeat_in_coroutine("function first", first, 70000)
local resume_second = repeat_in_coroutine("function second", second, 130000)

function programs.coroutines()
	resume_first()
	resume_second()
end

-- Ten lines, of which one is hot. A line's number is looked up below. The loops
-- are long against now(), which some builds take microseconds for without the JIT,
-- and which is on the line but only in part in what it measures.
function programs.lines()
	local x, start, n, hot = 0, nil, 16000, 240000
	start = now() for i = 1, n do x = x + i % 7 end add("line 1", start)
	start = now() for i = 1, n do x = x + i % 7 end add("line 2", start)
	start = now() for i = 1, n do x = x + i % 7 end add("line 3", start)
	start = now() for i = 1, n do x = x + i % 7 end add("line 4", start)
	start = now() for i = 1, hot do x = x + i % 7 end add("line 5", start)
	start = now() for i = 1, n do x = x + i % 7 end add("line 6", start)
	start = now() for i = 1, n do x = x + i % 7 end add("line 7", start)
	start = now() for i = 1, n do x = x + i % 7 end add("line 8", start)
	start = now() for i = 1, n do x = x + i % 7 end add("line 9", start)
	start = now() for i = 1, n do x = x + i % 7 end add("line 10", start)
	return x
end

-- The collector's own state; nothing is collected but where it is asked for.
local kept = {}
if program == "collector" then
	for i = 1, 30000 do
		kept[i] = { i }
	end
end

function programs.collector()
	collectgarbage("stop")
	local start = now()
	flat(200000)
	add("function flat", start)
	start = now()
	collectgarbage()
	add("state GC", start)
end

-- A loop that may be compiled beside one that may not.
local compiled, interpreted = define "compiled", define "interpreted"
jit.off(interpreted)

function programs.traces()
	local start = now()
	compiled(200000)
	add(jit.status() and "state TRACE" or "function compiled", start)
	start = now()
	interpreted(40000)
	add("function interpreted", start)
end

local run = assert(programs[program], "which program?")
for _ = 1, 20 do
	run()
end
spent = {}
local wall_start = os.time()
local begin = now()
-- Without a limit of the handler's share, which would make samples count for
-- more than one on a busy machine.
assert(sysprof.start { mode = "C", interval = 0.1, overhead = 100 })
repeat
	run()
until sysprof.report().samples >= sample_count or
	os.time() - wall_start > seconds_max
local whole = now() - begin
assert(sysprof.stop())

local line_numbers, number = {}, 0
for text in io.lines(arg[0]) do
	number = number + 1
	local name = text:match('^\tstart = now%(%) for .*add%("line (%d+)"')
	if name then
		line_numbers["line " .. name] = "line " .. number
	end
end
print("samples", sysprof.report().samples)
for name, seconds in pairs(spent) do
	local kind, what = (line_numbers[name] or name):match("^(%S+) (.*)$")
	print("expect", kind, what, 100 * seconds / whole)
end
