-- SPDX-License-Identifier: MIT
-- C code that calls back by the FFI. usage: luajit callbacks.lua DUMP SECONDS
local ffi = require "ffi"
local misc = require "misc"

ffi.cdef [[
	void qsort(void *base, size_t count, size_t bytes,
		int (*compare)(const int *, const int *));
]]

local function less(a, b)
	local x = 0
	for i = 1, 5 do x = x + i end
	return a[0] < b[0] and -1 or a[0] > b[0] and 1 or x - 15
end

local callback = ffi.cast("int (*)(const int *, const int *)", less)
local numbers = ffi.new("int[100]")

local function round()
	for i = 0, 99 do numbers[i] = i * 7919 % 101 end
	ffi.C.qsort(numbers, 100, 4, callback)
end
jit.off(round)

assert(misc.sysprof.start { mode = "C", interval = 0.5, path = arg[1] })
local started = os.clock()
repeat round() until os.clock() - started > tonumber(arg[2])
assert(misc.sysprof.stop())
