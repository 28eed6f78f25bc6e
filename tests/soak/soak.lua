-- SPDX-License-Identifier: MIT
-- Everything that moves under a profiler's feet, all the time: traces are
-- flushed, libraries come and go, errors are thrown, coroutines switched, code
-- is loaded and collected. usage: luajit soak.lua LIBRARY DUMP SECONDS
local ffi = require "ffi"
local misc = require "misc"

ffi.cdef [[
	uint64_t late_outer(uint64_t count);
	void *dlopen(const char *path, int flags);
	int dlclose(void *library);
]]

local library_path, dump_path, seconds = arg[1], arg[2], tonumber(arg[3])
local random = math.random

local function spin(n)
	local x = 0
	for i = 1, n do x = x + i % 7 end
	return x
end

local function recurse(depth)
	if depth == 0 then return spin(50) end
	return 1 + recurse(depth - 1)
end

local function thrower(depth)
	if depth == 0 then error({ "thrown" }) end
	return thrower(depth - 1) + 1
end

local function worker(n)
	for i = 1, n do
		coroutine.yield(i)
		spin(20)
	end
	if random(2) == 1 then error("in a coroutine") end
end

local callback_type = ffi.typeof("int (*)(int)") -- each of them is kept
local moves = {}

function moves.flush() jit.flush() end

function moves.switch()
	jit.off()
	spin(500)
	jit.on()
end

function moves.library()
	local handle = ffi.C.dlopen(library_path, 2)
	local library = ffi.load(library_path)
	library.late_outer(2000)
	library = nil
	collectgarbage()
	ffi.C.dlclose(handle)
end

function moves.errors()
	for i = 1, 20 do
		pcall(thrower, i)
		xpcall(thrower, function(e) return e end, i)
	end
end

function moves.coroutines()
	for _ = 1, 20 do
		local co = coroutine.create(worker)
		repeat coroutine.resume(co, random(5))
		until coroutine.status(co) == "dead"
	end
end

function moves.deep()
	local co = coroutine.wrap(recurse)
	co(random(700))
end

function moves.code()
	for i = 1, 10 do
		local f = assert(loadstring(
			"local x = ... for i = 1, 100 do x = x + i end return x", "=" .. i))
		f(i)
	end
end

function moves.callbacks()
	local callback = ffi.cast(callback_type, function(x) return spin(x) end)
	for i = 1, 20 do callback(i) end
	callback:free()
end
jit.off(moves.callbacks)

function moves.collect()
	for _ = 1, 20 do
		local u = newproxy(true)
		getmetatable(u).__gc = function() spin(20) end
	end
	collectgarbage("step", 100)
end

function moves.strings()
	local s = ("abc"):rep(20):gsub("b", function(x) return x:upper() end)
	local t = { s:byte(1, 30) }
	table.sort(t, function(a, b) return a < b end)
	return recurse(10) + #table.concat(t)
end

function moves.restart()
	if random(20) > 1 then return end
	assert(misc.sysprof.stop())
	assert(misc.sysprof.start { mode = "C", interval = 0.1,
		path = dump_path })
end

local names = {}
for name in pairs(moves) do names[#names + 1] = name end

local function resident_kib()
	for line in io.lines("/proc/self/status") do
		local kib = line:match("^VmRSS:%s*(%d+)")
		if kib then return tonumber(kib) end
	end
end

assert(misc.sysprof.start { mode = "C", interval = 0.1, path = dump_path })
local started, rounds = os.time(), 0
local warm_kib
repeat
	for _ = 1, 200 do moves[names[random(#names)]]() end
	rounds = rounds + 1
	if not warm_kib and os.time() - started > seconds / 4 then
		collectgarbage()
		warm_kib = resident_kib()
	end
until os.time() - started >= seconds
collectgarbage()
local report = misc.sysprof.report()
assert(misc.sysprof.stop())
print(("%d rounds, %d samples in the last profile, %d KiB more resident")
	:format(rounds, report.samples, resident_kib() - warm_kib))
for _, counters in ipairs { "incomplete", "lost" } do
	for name, count in pairs(report[counters] or {}) do
		if count > 0 then print("  " .. name, count) end
	end
end
