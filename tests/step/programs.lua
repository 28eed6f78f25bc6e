-- SPDX-License-Identifier: MIT
-- Programs to step through: each brings the VM into states that are hard to
-- read. All are short, since every machine instruction is a sample.
local stepper = ...
local ffi = require "ffi"

local programs = {}

local function spin(n)
	local x = 0
	for i = 1, n do
		x = x + i % 7
	end
	return x
end

local function middle(n)
	local r = spin(n)
	return r + 1
end

local function outer(n)
	local r = middle(n)
	return r + 1
end

function programs.calls()
	for _ = 1, 10 do
		outer(20)
	end
end

local function recurse(depth, n)
	if depth == 0 then
		return spin(n)
	end
	local r = recurse(depth - 1, n)
	return r + 1
end

function programs.recursion()
	for _ = 1, 4 do
		recurse(15, 10)
	end
end

local function sum(...)
	local s = 0
	for i = 1, select("#", ...) do
		s = s + (select(i, ...))
	end
	return s
end

local function forward(...)
	return sum(...), sum(1, ...)
end

function programs.varargs()
	for _ = 1, 4 do
		sum(1, 2, 3)
		local r = forward(4, 5, 6, 7)
		spin(r)
	end
end

local function tail(n)
	if n == 0 then
		return spin(5)
	end
	return tail(n - 1)
end

function programs.tail_calls()
	for _ = 1, 4 do
		local r = tail(6)
		spin(r)
	end
end

local meta = setmetatable({}, {
	__index = function(_, k) local v = k + 1 return v end,
	__newindex = function(_, _, v) spin(v) end,
	__add = function() return spin(3) end,
	__unm = function() return 1 end,
	__lt = function() return true end,
	__le = function() return spin(1) == 1 end,
	__eq = function() return true end,
	__concat = function() return "x" end,
	__call = function(_, x) return spin(x) end,
	__tostring = function() return "meta" end,
})

function programs.metamethods()
	for i = 1, 4 do
		local a = meta[i]
		local b = meta + 1
		local c = meta < meta
		local d = -meta
		local e = meta .. "a"
		local f = meta(3)
		meta.field = 2
		local g = tostring(meta)
		spin(a + b + d + f + #e + #g + (c and 1 or 0))
	end
end

local function throw(x)
	if x then
		error("thrown")
	end
	return x
end

function programs.errors()
	for _ = 1, 3 do
		pcall(throw, true)
		xpcall(throw, function() return spin(2) end, true)
		pcall(throw, false)
		stepper.pcall(throw, true)
		pcall(function() local x = nil + 1 return x end)
	end
end

local function worker(n)
	for i = 1, n do
		coroutine.yield(i)
		spin(2)
	end
	return 1
end

function programs.coroutines()
	for _ = 1, 2 do
		local co = coroutine.create(worker)
		repeat
			coroutine.resume(co, 3)
		until coroutine.status(co) == "dead"
		local f = coroutine.wrap(worker)
		f(2)
		f()
	end
end

local function nested()
	local f = coroutine.wrap(function()
		spin(3)
		coroutine.yield(1)
		spin(4)
	end)
	f()
	f()
end

function programs.nested_coroutines()
	local f = coroutine.wrap(function()
		nested()
		coroutine.yield(1)
		nested()
	end)
	f()
	f()
end

function programs.resume_from_c()
	local co = coroutine.create(worker)
	stepper.resume(co)
	stepper.resume(co)
	local bad = coroutine.create(throw)
	coroutine.resume(bad, true)
end

function programs.calls_from_c()
	for _ = 1, 3 do
		stepper.call(outer, 5)
		stepper.pcall(middle, 5)
		stepper.cpcall(function() spin(3) end)
		stepper.call(stepper.call, stepper.pcall, middle, 2)
	end
end

local function less(a, b)
	return a < b
end

function programs.sort()
	local t = {}
	for i = 1, 20 do
		t[i] = (i * 7919) % 31
	end
	table.sort(t, less)
	table.sort(t)
end

function programs.strings()
	local s = ("abc"):rep(5):gsub("b", function(x) return x:upper() end)
	for k, v in ("a=1, b=2"):gmatch("(%w+)=(%w+)") do
		s = s .. k .. v
	end
	s = s:gsub("%w", { a = "A" })
	s = string.format("%d %s %5.2f %q", 5, "x", 1.5, s)
	s = s:sub(2, 5) .. s:byte(1) .. string.char(65) .. tostring(12.5)
	return #s + (tonumber("12") or 0)
end

function programs.libraries()
	local t = { 3, 1, 2, x = 1 }
	local q
	for _, v in pairs(t) do q = v end
	for _, v in ipairs(t) do q = v end
	for _, v in next, t do q = v end
	q = table.concat({ 1, 2, 3 }, ",")
	table.insert(t, 4)
	table.remove(t)
	q = math.sin(1) + math.floor(2.5) + math.pow(2, 3) + 2 ^ 3.3
		+ math.fmod(5, 3) + #t + math.max(1, 2, 3) + math.log(2)
	rawset(t, "y", rawget(t, "x"))
	q = q + select(2, 1, 2, 3) + (unpack({ 1, 2 }))
	return q
end

function programs.collector()
	for _ = 1, 3 do
		local u = newproxy(true)
		getmetatable(u).__gc = function() spin(2) end
		u = nil
		collectgarbage()
	end
	for i = 1, 30 do
		local _ = { i, tostring(i) }
	end
	collectgarbage("step", 10)
end

local library = ffi.load(stepper.path)
pcall(ffi.cdef, [[
	void stepper_callback(void (*f)(void));
	double stepper_add(double a);
]])
local callback = ffi.cast("void (*)(void)", function() spin(4) end)
local function call_back()
	library.stepper_callback(callback)
end
jit.off(call_back)

function programs.ffi_calls()
	for _ = 1, 6 do
		library.stepper_add(3)
	end
	local t = ffi.new("int[4]")
	for i = 0, 3 do
		t[i] = i
	end
end

function programs.ffi_callbacks()
	for _ = 1, 3 do
		call_back()
	end
end

function programs.upvalues()
	local u = 0
	local function add() u = u + 1 end
	for _ = 1, 10 do
		add()
	end
end

function programs.loading()
	local f = loadstring("local x = 1 for i = 1, 5 do x = x + i end return x")
	f()
	pcall(loadstring, "not lua")
end

function programs.hooks()
	debug.sethook(function() spin(2) end, "l")
	local x = 1
	x = 2
	debug.sethook()
	return x
end

function programs.big_stack()
	local function deep(n)
		if n > 0 then
			return 1 + deep(n - 1)
		end
		return 0
	end
	deep(150)
end

function programs.traces()
	local s = 0
	for i = 1, 60 do
		local r = outer(3)
		s = s + r
		if i % 9 == 0 then
			s = s + #tostring(i)
		end
	end
	for _ = 1, 20 do
		recurse(3, 2)
	end
end

function programs.side_traces()
	local s = 0
	for i = 1, 80 do
		if i % 3 == 0 then
			s = s + middle(2)
		elseif i % 5 == 0 then
			s = s + sum(i, 1)
		else
			s = s + 1
		end
	end
	return s
end

function programs.snapshots()
	local t = {}
	for i = 1, 40 do
		t[i] = { i }
		local r = middle(2)
		t[i][2] = tostring(r)
	end
end

return programs
