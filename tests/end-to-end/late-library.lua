-- SPDX-License-Identifier: MIT
-- usage: luajit late-library.lua load|again|constructor
-- Profiles itself into load.bin, … while it loads ./late.so.
local ffi = require "ffi"
local misc = require "misc"

ffi.cdef [[
	uint64_t late_outer(uint64_t count);
	int usleep(unsigned int us);
	int setenv(const char *name, const char *value, int overwrite);
	void *dlopen(const char *path, int flags);
	int dlclose(void *library);
]]

local RTLD_NOW = 2

local function work(seconds)
	local start, sum = os.clock(), 0
	repeat
		for i = 1, 10000 do sum = sum + i % 7 end
	until os.clock() - start > seconds
	return sum
end

local function resident_kib()
	for line in io.lines("/proc/self/status") do
		local kib = line:match("^VmRSS:%s*(%d+)")
		if kib then return tonumber(kib) end
	end
end

local function start(interval)
	assert(misc.sysprof.start { mode = "C", interval = interval,
		path = arg[1] .. ".bin" })
end

local tests = {}

function tests.load()
	start(1)
	work(0.2)
	local late = ffi.load("./late.so")
	local started = os.clock()
	repeat late.late_outer(100000) until os.clock() - started > 1.5
	assert(misc.sysprof.stop())
end

local function load_again(seconds)
	local started, count = os.clock(), 0
	repeat
		local library = ffi.C.dlopen("./late.so", RTLD_NOW)
		assert(library ~= nil)
		local late = ffi.load("./late.so")
		late.late_outer(1000)
		late = nil
		collectgarbage()
		assert(ffi.C.dlclose(library) == 0)
		count = count + 1
	until os.clock() - started > seconds
	return count
end

function tests.again()
	start(0.1)
	load_again(2) -- tables of fixed size fill up first
	local before = resident_kib()
	local count = load_again(3)
	local after = resident_kib()
	assert(misc.sysprof.stop())
	print(("loaded %d times, %d KiB more resident"):format(count,
		after - before))
	assert(count >= 50 and after - before < 8192)
end

function tests.constructor()
	local stopped
	local function stop() stopped = { misc.sysprof.stop() } end
	jit.off(stop)
	local hook = ffi.cast("void (*)(void)", stop)
	local address = tonumber(ffi.cast("uintptr_t", hook))
	assert(ffi.C.setenv("LATE_LIBRARY_HOOK", ("%d"):format(address), 1) == 0)
	local function load() return ffi.C.dlopen("./late.so", RTLD_NOW) end
	jit.off(load)
	start(0.1)
	work(0.7)
	assert(load() ~= nil)
	assert(stopped[1] == true, stopped[2])
end

tests[arg[1]]()
