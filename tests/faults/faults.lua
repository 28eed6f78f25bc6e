-- SPDX-License-Identifier: MIT
-- Each call that a start, a second of sampling and a stop make is made to fail
-- once. Either the profile goes on without what has failed, or there is a message;
-- the program goes on, no descriptor is left open, a refused start leaves no file and
-- takes none away, and the next profile is whole.
local sysprof = require "misc.sysprof"
local ffi = require "ffi"
ffi.cdef [[
void fail_nth_arm(long n); const char *fail_nth_disarm(void);
int dup(int); int close(int);
]]

local function work(seconds)
	local start, sum = os.clock(), 0
	repeat
		for i = 1, 10000 do sum = sum + i % 7 end
	until os.clock() - start > seconds
	return sum
end

-- The lowest free descriptor: it grows if one was left open.
local function free_descriptor()
	local fd = ffi.C.dup(0)
	ffi.C.close(fd)
	return fd
end

local function exists(path)
	local file = io.open(path)
	return file ~= nil and file:close()
end

-- For an error of the start also true.
local function profile(options)
	local ok, message, code = sysprof.start(options)
	if not ok then return false, message, code, true end
	work(0.01)
	assert(type(sysprof.report().samples) == "number")
	return sysprof.stop()
end

local function try(options, most)
	local refused, tolerated, names = 0, 0, {}
	assert(profile(options))
	local free = free_descriptor()
	for n = 1, most do
		local path = options.path or "none"
		local is_there = n % 2 == 0 and exists(path)
		if not is_there then os.remove(path) end
		ffi.C.fail_nth_arm(n)
		local ok, message, code, at_start = profile(options)
		local name = ffi.string(ffi.C.fail_nth_disarm())
		if name == "" then
			assert(ok, message)
			break
		end
		names[name] = (names[name] or 0) + 1
		assert(n < most, "no end of calls")
		if ok then
			tolerated = tolerated + 1
		else
			refused = refused + 1
			assert(type(message) == "string" and #message > 10 and
				type(code) == "number", name)
		end
		-- What cannot be told to be ours is not removed.
		if at_start and name ~= "fstat" then
			assert(exists(path) == is_there, name .. " " .. n ..
				(is_there and ": a file is gone"
				or ": a file is left"))
		end
		assert(not sysprof.report().running, name)
		-- What cannot be told to be ours is not closed.
		if name == "ioctl" or name == "fstat" then
			free = free_descriptor()
		end
		assert(free_descriptor() == free,
			name .. " " .. n .. ": a descriptor is left open")
		local again, why = profile(options)
		assert(again, name .. " " .. n .. ": " .. tostring(why))
	end
	local list = {}
	for name, count in pairs(names) do
		list[#list + 1] = name .. " " .. count
	end
	table.sort(list)
	print(("mode %s: %d refused, %d tolerated (%s)"):format(options.mode,
		refused, tolerated, table.concat(list, ", ")))
	assert(refused > 5)
end

try({ mode = "D", interval = 1 }, 3000)
try({ mode = "C", interval = 1, path = "dump.bin" }, 3000)
try({ mode = "C", interval = 1, path = "dump.bin", scope = "process" }, 3000)
