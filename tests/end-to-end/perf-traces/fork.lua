-- SPDX-License-Identifier: MIT
-- A child that runs what its parent has compiled, and then compiles too.
-- Arguments: "map" or "jitdump", the file of the dump, a file for the pids.

local perf, dump, pids_path = arg[1], arg[2], arg[3]
local sysprof = require("misc").sysprof
local ffi = require("ffi")
ffi.cdef [[
	int fork(void);
	int waitpid(int pid, int *status, int options);
	int getpid(void);
	void _exit(int status);
]]
jit.off(true, true)

local function make(name)
	return assert(loadstring([[
		local finish = os.clock() + ...
		local sum = 0
		repeat
			for i = 1, 100000 do
				sum = sum + i % 7
			end
		until os.clock() > finish
		return sum
	]], "@" .. name .. ".lua"))
end

local inherited, own = make("inherited"), make("own")
assert(sysprof.start { mode = "L", interval = 1000, path = dump, perf = perf })
inherited(0.2)
local child = ffi.C.fork()
if child == 0 then
	inherited(0.4)
	own(0.4)
	ffi.C._exit(0)
end
ffi.C.waitpid(child, nil, 0)
assert(sysprof.stop())
local file = assert(io.open(pids_path, "w"))
file:write(child, "\n")
file:close()
