-- SPDX-License-Identifier: MIT
-- Functions that call each other in every way, at random, each noting that it
-- runs; see truth_host.c. A function's id is the line where it is defined.
local ffi = require "ffi"
ffi.cdef [[
	struct notes { uint32_t depth, throwing; uint64_t ids[256]; };
	extern struct notes truth_notes;
	void truth_callback(void (*function)(void));
	void truth_burn(int count);
]]
local C, notes = ffi.C, ffi.C.truth_notes
local truth, random = truth, math.random
local DEPTH_MAX = 24
local next_call

local line = {}

local functions = {}

function functions.plain()
	notes.ids[notes.depth] = line.plain notes.depth = notes.depth + 1
	local x = 0
	for i = 1, 30 do x = x + i % 7 end
	next_call()
	notes.depth = notes.depth - 1
end

function functions.burning()
	notes.ids[notes.depth] = line.burning notes.depth = notes.depth + 1
	C.truth_burn(100)
	next_call()
	C.truth_burn(50)
	notes.depth = notes.depth - 1
end

function functions.call_from_c()
	notes.ids[notes.depth] = line.call_from_c notes.depth = notes.depth + 1
	truth.call(functions.plain)
	notes.depth = notes.depth - 1
end

function functions.pcall_from_c()
	notes.ids[notes.depth] = line.pcall_from_c notes.depth = notes.depth + 1
	truth.pcall(functions.burning)
	truth.pcall(functions.thrower)
	notes.depth = notes.depth - 1
end

function functions.cpcall_from_c()
	notes.ids[notes.depth] = line.cpcall_from_c notes.depth = notes.depth + 1
	truth.cpcall(functions.plain)
	notes.depth = notes.depth - 1
end

function functions.resume_from_c()
	notes.ids[notes.depth] = line.resume_from_c notes.depth = notes.depth + 1
	truth.resume(functions.plain)
	notes.depth = notes.depth - 1
end

function functions.coroutine()
	notes.ids[notes.depth] = line.coroutine notes.depth = notes.depth + 1
	local resume = coroutine.wrap(functions.burning)
	resume()
	notes.depth = notes.depth - 1
end

function functions.thrower()
	notes.ids[notes.depth] = line.thrower notes.depth = notes.depth + 1
	C.truth_burn(30)
	notes.throwing = 1
	error("thrown")
end

function functions.compare(a, b)
	notes.ids[notes.depth] = line.compare notes.depth = notes.depth + 1
	if random(20) == 1 then next_call() end
	notes.depth = notes.depth - 1
	return a < b
end

function functions.sort()
	notes.ids[notes.depth] = line.sort notes.depth = notes.depth + 1
	local t = {}
	for i = 1, 10 do t[i] = i * 7919 % 31 end
	table.sort(t, functions.compare)
	notes.depth = notes.depth - 1
end

function functions.replace(text)
	notes.ids[notes.depth] = line.replace notes.depth = notes.depth + 1
	if random(5) == 1 then next_call() end
	notes.depth = notes.depth - 1
	return text
end

function functions.gsub()
	notes.ids[notes.depth] = line.gsub notes.depth = notes.depth + 1
	local s = ("abcabc"):gsub("%w", functions.replace)
	notes.depth = notes.depth - 1
	return s
end

-- What is returned lies where the function that returns it was.
function functions.give(f)
	notes.ids[notes.depth] = line.give notes.depth = notes.depth + 1
	notes.depth = notes.depth - 1
	return f
end

function functions.returned()
	notes.ids[notes.depth] = line.returned notes.depth = notes.depth + 1
	local never = truth.never
	for i = 1, 4 do
		functions.give(never)
		truth.give(never)
		assert(never)
		rawget(truth, "never")
	end
	notes.depth = notes.depth - 1
end

function functions.index(_, key)
	notes.ids[notes.depth] = line.index notes.depth = notes.depth + 1
	next_call()
	notes.depth = notes.depth - 1
	return key
end

local indexed = setmetatable({}, { __index = functions.index })

function functions.metamethod()
	notes.ids[notes.depth] = line.metamethod notes.depth = notes.depth + 1
	local x = indexed[1]
	notes.depth = notes.depth - 1
	return x
end

function functions.called_back()
	notes.ids[notes.depth] = line.called_back notes.depth = notes.depth + 1
	next_call()
	notes.depth = notes.depth - 1
end

local callback = ffi.cast("void (*)(void)", functions.called_back)

function functions.callback()
	notes.ids[notes.depth] = line.callback notes.depth = notes.depth + 1
	C.truth_callback(callback)
	notes.depth = notes.depth - 1
end
-- A callback out of compiled code is an error in LuaJIT.
jit.off(functions.callback)

function functions.handler(message)
	notes.throwing = 0
	notes.ids[notes.depth] = line.handler notes.depth = notes.depth + 1
	C.truth_burn(30)
	notes.depth = notes.depth - 1
	notes.throwing = 1
	return message
end

-- The error handler runs on top of the function that threw.
function functions.xpcall()
	notes.ids[notes.depth] = line.xpcall notes.depth = notes.depth + 1
	local depth = notes.depth
	xpcall(functions.plain, functions.handler)
	xpcall(functions.thrower, functions.handler)
	notes.depth = depth
	notes.throwing = 0
	C.truth_burn(20)
	notes.depth = notes.depth - 1
end

function functions.finalized()
	notes.ids[notes.depth] = line.finalized notes.depth = notes.depth + 1
	C.truth_burn(50)
	local x = 0
	for i = 1, 100 do x = x + i % 7 end
	notes.depth = notes.depth - 1
end

-- The collector runs here alone: a finalizer must not come between the two parts
-- of another function's note.
function functions.finalizer()
	notes.ids[notes.depth] = line.finalizer notes.depth = notes.depth + 1
	getmetatable(newproxy(true)).__gc = functions.finalized
	if random(10) == 1 then
		collectgarbage()
		collectgarbage("stop")
	end
	notes.depth = notes.depth - 1
end

function functions.hook()
	notes.ids[notes.depth] = line.hook notes.depth = notes.depth + 1
	C.truth_burn(20)
	local x = 0
	for i = 1, 20 do x = x + i % 7 end
	notes.depth = notes.depth - 1
end

function functions.hooked()
	notes.ids[notes.depth] = line.hooked notes.depth = notes.depth + 1
	debug.sethook(functions.hook, "", 10)
	local x = 0
	for i = 1, 30 do x = x + i % 7 end
	debug.sethook()
	notes.depth = notes.depth - 1
end

-- Traces do not look whether there is a hook.
jit.off(functions.hooked)

-- In another VM; there: in the same.
function functions.other_vm()
	notes.ids[notes.depth] = line.other_vm notes.depth = notes.depth + 1
	truth.other()
	notes.depth = notes.depth - 1
end

local starts = { "plain", "burning", "call_from_c", "pcall_from_c",
	"cpcall_from_c", "resume_from_c", "coroutine", "sort", "gsub",
	"metamethod", "callback", "xpcall", "finalizer", "hooked", "other_vm",
	"returned" }

-- Ends each level, half of the time. A tail call leaves no frame.
next_call = function()
	if notes.depth < DEPTH_MAX and random(5) > 1 then
		return functions[starts[random(#starts)]]()
	end
end

for name, f in pairs(functions) do
	line[name] = debug.getinfo(f).linedefined
	truth.note(line[name])
end

function start()
	next_call()
	C.truth_burn(1)
end

function prepare(mode, seed)
	math.randomseed(seed)
	collectgarbage("stop")
	if mode == "off" then jit.off() else jit.on() end
end

function run(seconds)
	local started = os.clock()
	repeat
		for _ = 1, 20 do functions[starts[random(#starts)]]() end
	until os.clock() - started > seconds
end
