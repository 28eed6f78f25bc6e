-- SPDX-License-Identifier: MIT
-- Runs one program of this directory in one of three ways.
--
-- usage: luajit run.lua plain|profile PROGRAM SECONDS
--        luajit -joff run.lua pairs PROGRAM
--        luajit run.lua judge PAIRS < FOLDED
--
-- plain and profile print the program's result; profile writes sysprof.bin and,
-- to report.txt, how many samples there were and how many incomplete ones.
-- pairs prints which Lua function the VM saw call which, by a hook: the nearest
-- Lua function below the called one, whatever C functions are between. judge
-- says which pairs of a profile are none of these.
local mode, program, seconds = arg[1], arg[2], tonumber(arg[3])
local here = arg[0]:match("^(.*)/[^/]*$") or "."

local function repeat_run(run, limit)
	local start, first = os.clock(), run()
	while os.clock() - start < limit do
		assert(run() == first, "the result changed")
	end
	return first
end

local function key_of(info)
	return info.short_src:match("[^/]*$") .. ":" .. info.linedefined
end

-- --- pairs --------------------------------------------------------------------

local seen, resumers, bodies, wrappers = {}, {}, {}, {}

local function nearest_lua(level)
	repeat
		level = level + 1
		local info = debug.getinfo(level, "S")
		if not info then
			return nil
		elseif info.what ~= "C" then
			return key_of(info)
		end
	until false
end

local function note_call()
	local called = debug.getinfo(2, "Sf")
	local caller = nearest_lua(3)
	if called.what ~= "C" then
		if caller then
			seen[caller .. " " .. key_of(called)] = true
		else
			bodies[key_of(called)] = true
		end
	elseif caller and (called.func == coroutine.resume or
		wrappers[called.func]) then
		resumers[caller] = true
	end
end

local function note_wrappers()
	local wrap = coroutine.wrap
	function coroutine.wrap(f)
		local wrapper = wrap(f)
		wrappers[wrapper] = true
		return wrapper
	end
end

local function print_pairs(run, anywhere)
	note_wrappers()
	debug.sethook(note_call, "c")
	repeat_run(run, 0.2)
	debug.sethook()
	for caller in pairs(resumers) do
		for body in pairs(bodies) do
			seen[caller .. " " .. body] = true
		end
	end
	for pair in pairs(seen) do
		print(pair)
	end
	for _, f in ipairs(anywhere or {}) do
		print("anywhere " .. key_of(debug.getinfo(f, "S")))
	end
end

-- --- judge --------------------------------------------------------------------

-- The main chunk calls repeat_run in ways of its own.
local function is_ours(pair)
	return pair:match("^run%.lua:0 run%.lua:") ~= nil
end

local function judge(name)
	local allowed, illegal, checked = {}, {}, 0
	for line in io.lines(name) do
		allowed[line] = true
	end
	for line in io.lines() do
		local stack, count = line:match("^(.*) (%d+)$")
		local caller
		for frame in stack:gmatch("[^;]+") do
			local callee = frame:match("([^/ ]+%.lua:%d+)$")
			-- A name in brackets says that frames are missing there.
			if frame:match("^%[") then
				caller = nil
			end
			local pair = callee and caller and caller .. " " .. callee
			if pair then
				checked = checked + count
				if not allowed[pair] and not is_ours(pair) and
					not allowed["anywhere " .. callee] then
					illegal[pair] = (illegal[pair] or 0) + count
				end
			end
			caller = callee or caller
		end
	end
	for pair, count in pairs(illegal) do
		print("illegal: " .. pair .. ", " .. count .. " samples")
	end
	print("pairs checked: " .. checked)
	os.exit(checked > 0 and not next(illegal) and 0 or 1)
end

-- --- ways to run ------------------------------------------------------------------

if mode == "judge" then
	judge(program)
end
local run, anywhere = assert(loadfile(here .. "/" .. program .. ".lua"))()
if mode == "pairs" then
	print_pairs(run, anywhere)
elseif mode == "plain" then
	print(repeat_run(run, seconds))
else
	local sysprof = require "misc.sysprof"
	assert(sysprof.start { mode = "C", interval = 0.1 })
	local result = repeat_run(run, seconds)
	assert(sysprof.stop())
	print(result)
	local report, incomplete = sysprof.report(), 0
	local file = assert(io.open("report.txt", "w"))
	for reason, count in pairs(report.incomplete) do
		incomplete = incomplete + count
		if count > 0 then
			file:write("# ", reason, " ", count, "\n")
		end
	end
	file:write(report.samples, " ", incomplete, "\n")
	file:close()
end
