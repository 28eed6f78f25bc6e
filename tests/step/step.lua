-- SPDX-License-Identifier: MIT
-- Samples programs.lua after every machine instruction and judges the stacks.
--
-- usage: luajit step.lua MODULE off|on|cold [LIMIT [PROGRAM [verbose]]]
--
-- off: JIT off. on: traces are compiled before. cold: the compiler runs, too.
--
-- A stack that holds a marker says itself that it is not whole: marked. All
-- others have two judges.
--
-- Glitch: one instruction calls or returns from one function, so a stack that
-- differs by more from the one before, and from which the next ones come back,
-- was wrong. Errors and coroutines change the stack for good; that is none.
--
-- Illegal: a function stands on one that cannot call it, by the comments in
-- programs.lua.
local path, mode, limit, only, verbose = arg[1], arg[2], tonumber(arg[3]),
	arg[4], arg[5]
limit = limit or 60000
if only == "" then only = nil end

-- How far one instruction may change a stack.
local CHANGE_MAX = 3
-- How many runs later the stack must still be different to be true.
local LOOK_AHEAD = 3

-- Shares of all steps that may be marked or lack the leaf's line; the variables
-- are in percent. Marked are some instructions of the recorder, where it moves a
-- frame to stitch a trace: up to 0.005 %.
local MARKED_MAX = (tonumber(os.getenv("STEP_MARKED_MAX")) or 0.02) / 100
local NO_LINE_MAX = (tonumber(os.getenv("STEP_NO_LINE_MAX")) or 0.5) / 100

local function read_file(name)
	local file = assert(io.open(name))
	local text = file:read("*a")
	file:close()
	return text
end

package.preload.stepper = assert(package.loadlib(path, "luaopen_stepper"))
if mode == "off" then
	jit.off()
else
	jit.opt.start("hotloop=8", "hotexit=4")
end
local stepper = require "stepper"
stepper.path = path
-- With traces to compare, no two layouts may fit: they would differ in something
-- that is read but was not checked.
local layouts = stepper.layouts()
assert(#layouts == 1 or mode == "off" and #layouts > 0,
	"layouts that fit: " .. table.concat(layouts, "; "))
local here = arg[0]:match("^(.*)/[^/]*$") or "."
local source = read_file(here .. "/programs.lua")
local programs = assert(loadstring(source, "=programs.lua"))(stepper)

-- What the comments of programs.lua say: names by line, callees by name, and
-- which functions may be called anywhere.
local names, callees, anywhere = {}, {}, {}

local function read_comment(comment)
	local head, list = comment:match("^([^:]*):(.*)$")
	local name = head:gsub(" %(anywhere%)$", "")
	anywhere[name] = name ~= head or nil
	callees[name] = {}
	for callee in list:gmatch("[^,]+") do
		callees[name][callee:match("^%s*(.-)%s*$")] = true
	end
	return name
end

local function read_comments()
	local number, name, comment = 0, nil, nil
	for line in source:gmatch("([^\n]*)\n") do
		number = number + 1
		local start = line:match("^%s*%-%->%s?(%S.*)$")
		local more = line:match("^%s*%-%->   (.*)$")
		if more then
			comment = comment .. " " .. more
			name = read_comment(comment)
		elseif start then
			comment = start
			name = read_comment(comment)
		elseif line:find("function", 1, true) and
			not line:match("^%s*%-%-") then
			assert(name, "no comment above line " .. number)
			names["=programs.lua:" .. number] = name
			name = nil
		end
	end
	for caller, list in pairs(callees) do
		for callee in pairs(list) do
			assert(callees[callee] or callee:match("^[FCb]") or
				callee == "chunk",
				caller .. " calls an unknown " .. callee)
		end
	end
end
read_comments()
names["=chunk:0"] = "chunk"

-- Name of a frame as the comments have it; nil for native ones.
local function guest_name(frame)
	local place = frame:match("^(.*:%d+):%d+$")
	if place then
		return names[place] or place
	end
	-- Which function of the FFI it is called by depends on the build.
	return frame:match("^F ffi") or frame:match("^[FC] .*") or
		frame:match("^built%-in .*")
end

-- The first pair of guest frames that cannot be, as text; nil if there is none.
local function find_illegal(frames, program)
	local caller
	for _, frame in ipairs(frames) do
		local callee = guest_name(frame)
		if not callee then
			callee = caller
		elseif caller == "C stepper_run" then
			if callee ~= program and not anywhere[callee] then
				return caller .. " -> " .. callee
			end
		elseif caller and not anywhere[callee] and
			not (callees[caller] and callees[caller][callee]) then
			return caller .. " -> " .. callee
		end
		if caller or callee == "C stepper_run" then
			caller = callee
		end
	end
	return not caller and "no program on the stack" or nil
end

local function split(stack)
	local frames = {}
	for frame in stack:gmatch("[^;]+") do
		frames[#frames + 1] = frame
	end
	return frames
end

-- The line is not part of which function it is.
local function without_lines(frames)
	local result = {}
	for i, frame in ipairs(frames) do
		result[i] = frame:gsub("^(.*:%d+):%d+$", "%1")
	end
	return result
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
	return stack:match(":%d+:(%d+)$") == "0"
end

local function tell(...)
	if verbose then
		print(...)
	end
end

-- Runs of whole stacks, and what is counted on the way.
local function collect(name, counts)
	local runs = {}
	stepper.stacks(function(stack, count, is_marked, where)
		if is_marked then
			counts.marked = counts.marked + count
			tell("MARKED", count, where, stack)
			return
		end
		if leaf_line_unknown(stack) then
			counts.no_line = counts.no_line + count
			tell("NOLINE", count, where, stack)
		end
		local frames = split(stack)
		local illegal = find_illegal(frames, name)
		if illegal then
			counts.illegal = counts.illegal + count
			tell("ILLEGAL", count, where, illegal, stack)
		end
		runs[#runs + 1] = { frames = without_lines(frames),
			stack = stack, count = count, where = where }
	end)
	return runs
end

local function count_glitches(runs)
	local glitch, i = 0, 2
	while i <= #runs do
		if is_glitch(runs, i) then
			local before, run = runs[i - 1], runs[i]
			glitch = glitch + run.count
			tell("BEFORE", before.count, before.where, before.stack)
			tell("GLITCH", run.count, run.where, run.stack)
			table.remove(runs, i)
		else
			i = i + 1
		end
	end
	return glitch
end

local total = { steps = 0, marked = 0, glitch = 0, illegal = 0, no_line = 0 }

local function judge(name)
	local counts = { marked = 0, illegal = 0, no_line = 0 }
	counts.steps = stepper.run(programs[name], limit)
	counts.glitch = count_glitches(collect(name, counts))
	print(("%-18s %8d steps, %5d marked, %5d glitch, %5d illegal, " ..
		"%5d no line"):format(name, counts.steps, counts.marked,
		counts.glitch, counts.illegal, counts.no_line))
	for key, count in pairs(counts) do
		total[key] = total[key] + count
	end
end

local ordered = {}
for name in pairs(programs) do
	ordered[#ordered + 1] = name
end
table.sort(ordered)
for _, name in ipairs(ordered) do
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

local function percent(count)
	return 100 * count / total.steps
end
print(("%s: %d steps, %.4f%% marked, %.4f%% glitch, %.4f%% illegal, " ..
	"%.4f%% no line"):format(mode, total.steps, percent(total.marked),
	percent(total.glitch), percent(total.illegal), percent(total.no_line)))
local good = total.steps > 0 and total.glitch == 0 and
	total.illegal == 0 and
	total.marked <= MARKED_MAX * total.steps and
	total.no_line <= NO_LINE_MAX * total.steps
os.exit(good and 0 or 1)
