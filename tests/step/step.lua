-- SPDX-License-Identifier: MIT
-- Samples programs.lua after every machine instruction and judges the stacks.
--
-- usage: luajit step.lua MODULE off|on|cold [LIMIT [PROGRAM [verbose]]]
--
-- off: JIT off. on: traces are compiled before. cold: the compiler runs, too.
--
-- One instruction calls or returns from one function, so a stack that differs
-- by more from the one before, and from which the next ones come back, was
-- wrong: a glitch. Errors and coroutines change the stack for good; that is
-- none. A stack that holds a marker says itself that it is not whole: marked.
local path, mode, limit, only, verbose = arg[1], arg[2], tonumber(arg[3]),
	arg[4], arg[5]
limit = limit or 60000
if only == "" then only = nil end

package.preload.stepper = package.loadlib(path, "luaopen_stepper")
if mode == "off" then
	jit.off()
else
	jit.opt.start("hotloop=8", "hotexit=4")
end
local stepper = require "stepper"
stepper.path = path
local here = arg[0]:match("^(.*)/[^/]*$") or "."
local programs = assert(loadfile(here .. "/programs.lua"))(stepper)

-- How far one instruction may change a stack.
local CHANGE_MAX = 3
-- How many runs later the stack must still be different to be true.
local LOOK_AHEAD = 3

local function split(stack)
	local frames = {}
	for frame in stack:gmatch("[^;]+") do
		-- The line is not part of which function it is.
		frames[#frames + 1] = frame:gsub("^([^:]*:%d+):%d+$", "%1")
	end
	return frames
end

local function distance(a, b)
	local common = 0
	while common < #a and common < #b and a[common + 1] == b[common + 1] do
		common = common + 1
	end
	return (#a - common) + (#b - common)
end

local function is_glitch(runs, i)
	local before, here_frames = runs[i - 1].frames, runs[i].frames
	if distance(before, here_frames) <= CHANGE_MAX then
		return false
	end
	for j = i + 1, math.min(i + LOOK_AHEAD, #runs) do
		if distance(before, runs[j].frames) <= CHANGE_MAX - 1 then
			return true
		end
	end
	return false
end

local function leaf_line_unknown(stack)
	local line = stack:match(":%d+:(%d+)$")
	return line == "0"
end

local total = { steps = 0, marked = 0, glitch = 0, no_line = 0 }

local function judge(name)
	local steps = stepper.run(programs[name], limit)
	local runs, marked, glitch, no_line = {}, 0, 0, 0
	local whole_before
	stepper.stacks(function(stack, count, is_marked, where)
		if is_marked then
			marked = marked + count
			if verbose then
				print("MARKED", count, where, stack)
			end
			return
		end
		if leaf_line_unknown(stack) then
			no_line = no_line + count
		end
		runs[#runs + 1] = { frames = split(stack), stack = stack,
			count = count, where = where }
	end)
	local i = 2
	while i <= #runs do
		if is_glitch(runs, i) then
			glitch = glitch + runs[i].count
			if verbose then
				print("BEFORE", runs[i - 1].count,
					runs[i - 1].where, runs[i - 1].stack)
				print("GLITCH", runs[i].count, runs[i].where,
					runs[i].stack)
			end
			table.remove(runs, i)
		else
			i = i + 1
		end
	end
	print(("%-18s %8d steps, %5d marked, %5d glitch, %5d no line")
		:format(name, steps, marked, glitch, no_line))
	total.steps = total.steps + steps
	total.marked = total.marked + marked
	total.glitch = total.glitch + glitch
	total.no_line = total.no_line + no_line
end

local names = {}
for name in pairs(programs) do
	names[#names + 1] = name
end
table.sort(names)
for _, name in ipairs(names) do
	if not only or only == name then
		if mode == "on" then
			for _ = 1, 12 do programs[name]() end
		elseif mode == "off" then
			programs[name]()
		end
		collectgarbage()
		judge(name)
	end
end
print(("%s: %d steps, %.4f%% marked, %.4f%% glitch, %.4f%% no line"):format(
	mode, total.steps, 100 * total.marked / total.steps,
	100 * total.glitch / total.steps, 100 * total.no_line / total.steps))
