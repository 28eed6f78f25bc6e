-- SPDX-License-Identifier: MIT
-- Programs to step through: each brings the VM into states that are hard to
-- read. All are short, since every machine instruction is a sample.
--
-- The comments "--> name: callee, …" say of the next line's function what may
-- stand right above it on a stack, which step.lua holds the stacks against. F
-- is a function of the VM's libraries, C one of the stepper's, (anywhere) a
-- function that the VM calls whenever it likes.
--
--> F pcall: throw, nil_arithmetic, give, F loadstring
--> F xpcall: throw
--> F error: handler, spin
--> F coroutine.resume: worker, throw
--> F coroutine.wrap function: worker, nested_body, outer_body, permutations,
-->   moved_body
--> F table.sort: less
--> F string.gsub: upper, F string.upper
--> F tostring: to_string
--> F ffi: callback, inner, from_inner
--> C stepper_call: outer, give_two, C stepper_call, C stepper_pcall
--> C stepper_pcall: middle, throw
--> C stepper_cpcall: C call_registered
--> C call_registered: called_by_cpcall
--> C stepper_resume: worker
local stepper = ...
local ffi = require "ffi"

local programs = {}
-- Chunks that were loaded, so that they can be named later.
local chunks = {}

--> spin:
local function spin(n)
	local x = 0
	for i = 1, n do
		x = x + i % 7
	end
	return x
end

--> middle: spin
local function middle(n)
	local r = spin(n)
	return r + 1
end

--> outer: middle
local function outer(n)
	local r = middle(n)
	return r + 1
end

--> calls: outer
function programs.calls()
	for _ = 1, 10 do
		outer(20)
	end
end

--> recurse: recurse, spin
local function recurse(depth, n)
	if depth == 0 then
		return spin(n)
	end
	local r = recurse(depth - 1, n)
	return r + 1
end

--> recursion: recurse
function programs.recursion()
	for _ = 1, 4 do
		recurse(15, 10)
	end
end

--> sum: F select
local function sum(...)
	local s = 0
	for i = 1, select("#", ...) do
		s = s + (select(i, ...))
	end
	return s
end

--> forward: sum
local function forward(...)
	return sum(...), sum(1, ...)
end

--> varargs: sum, forward, spin
function programs.varargs()
	for _ = 1, 4 do
		sum(1, 2, 3)
		local r = forward(4, 5, 6, 7)
		spin(r)
	end
end

-- A tail call replaces the frame of its caller.
--> tail:
local function tail(n)
	if n == 0 then
		return spin(5)
	end
	return tail(n - 1)
end

--> tail_calls: tail, spin
function programs.tail_calls()
	for _ = 1, 4 do
		local r = tail(6)
		spin(r)
	end
end

local meta = setmetatable({}, {
	--> index:
	__index = function(_, k) local v = k + 1 return v end,
	--> newindex: spin
	__newindex = function(_, _, v) spin(v) end,
	--> add:
	__add = function() return spin(3) end,
	--> unm:
	__unm = function() return 1 end,
	--> lt:
	__lt = function() return true end,
	--> le: spin
	__le = function() return spin(1) == 1 end,
	--> eq:
	__eq = function() return true end,
	--> concat:
	__concat = function() return "x" end,
	--> call:
	__call = function(_, x) return spin(x) end,
	--> to_string:
	__tostring = function() return "meta" end,
})

--> metamethods: to_string, index, newindex, add, unm, lt, concat, call, F tostring, spin
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

--> throw: F error
local function throw(x)
	if x then
		error("thrown")
	end
	return x
end

--> errors: F pcall, F xpcall, C stepper_pcall
function programs.errors()
	for _ = 1, 3 do
		pcall(throw, true)
		--> handler:
		xpcall(throw, function() return spin(2) end, true)
		pcall(throw, false)
		stepper.pcall(throw, true)
		--> nil_arithmetic:
		pcall(function() local x = nil + 1 return x end)
	end
end

--> linked: F math.floor, linked
local function linked(n)
	if n > 0 then
		local r = linked(n - 1)
		return r + 1
	end
	local r = math.floor(1.5)
	return r
end

--> relay: linked
local function relay(n)
	local r = linked(n)
	return r + 1
end

-- The links of its calls, one in each register, are still on the stack when the
-- functions above call others there: they lead here.
--> crossing: F math.abs, relay
local function crossing(n)
	do
		local a = math.abs(n)
		local b = math.abs(a)
		local c = math.abs(b)
		local d = math.abs(c)
		local e = math.abs(d)
		local f = math.abs(e)
		local g = math.abs(f)
		local h = math.abs(g)
		local i = math.abs(h)
		local j = math.abs(i)
		local k = math.abs(j)
		local l = math.abs(k)
		n = math.abs(l)
	end
	local r = relay(n)
	return r
end

-- These are the interpreter's links: a trace has none of a function that it has
-- inlined.
jit.off(linked)
jit.off(relay)
jit.off(crossing)

--> stale_links: crossing
function programs.stale_links()
	for i = 1, 6 do
		crossing(i % 3)
	end
end

-- While a function is returned it lies where the one that returns it was.
--> give: spin
local function give(f)
	spin(1)
	return f
end

--> give_two: spin
local function give_two(f)
	spin(1)
	return f, f
end

--> returns: give, give_two, F select, F rawget, F next, F assert, F pcall, F
-->   coroutine.wrap, F loadstring, C stepper_give, C stepper_call, spin
function programs.returns()
	local list = { math.floor, math.sqrt, string.dump, stepper.resume,
		spin, programs.returns }
	for i = 1, #list do
		local f = list[i]
		local a = give(f)
		local b, c = give_two(f)
		local d = select(2, i, f)
		local e = rawget(list, i)
		local _, g = next(list)
		local h = assert(f)
		local j = stepper.give(f)
		local k = coroutine.wrap(spin)
		local l = loadstring("return 1")
		local _, m = pcall(give, f)
		stepper.call(give_two, f)
		spin(#{ a, b, c, d, e, g, h, j, k, l, m })
	end
end

--> worker: F coroutine.yield, spin
local function worker(n)
	for i = 1, n do
		coroutine.yield(i)
		spin(2)
	end
	return 1
end

--> coroutines: F coroutine.create, F coroutine.resume, F coroutine.status, F
-->   coroutine.wrap, F coroutine.wrap function
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

--> nested: F coroutine.wrap, F coroutine.wrap function
local function nested()
	--> nested_body: spin, F coroutine.yield
	local f = coroutine.wrap(function()
		spin(3)
		coroutine.yield(1)
		spin(4)
	end)
	f()
	f()
end

--> nested_coroutines: F coroutine.wrap, F coroutine.wrap function
function programs.nested_coroutines()
	--> outer_body: nested, F coroutine.yield
	local f = coroutine.wrap(function()
		nested()
		coroutine.yield(1)
		nested()
	end)
	f()
	f()
end

--> permute: permute, F coroutine.yield
local function permute(list, n)
	if n == 0 then
		coroutine.yield(list)
		return
	end
	for i = 1, n do
		list[i], list[n] = list[n], list[i]
		permute(list, n - 1)
		list[i], list[n] = list[n], list[i]
	end
end

-- Traces that are left deep in a coroutine whose stack is still small.
--> generators: F coroutine.wrap, F coroutine.wrap function, spin
function programs.generators()
	local sum = 0
	for n = 2, 5 do
		local list = { 1, 2, 3, 4, 5 }
		--> permutations: permute
		local f = coroutine.wrap(function()
			permute(list, n)
		end)
		for _ = 1, 6 do
			local result = n > 2 and f()
			sum = sum + (result and result[1] or 0)
		end
	end
	spin(sum)
end

--> resume_from_c: F coroutine.create, F coroutine.resume, C stepper_resume
function programs.resume_from_c()
	local co = coroutine.create(worker)
	stepper.resume(co)
	stepper.resume(co)
	local bad = coroutine.create(throw)
	coroutine.resume(bad, true)
end

--> calls_from_c: C stepper_call, C stepper_pcall, C stepper_cpcall
function programs.calls_from_c()
	for _ = 1, 3 do
		stepper.call(outer, 5)
		stepper.pcall(middle, 5)
		--> called_by_cpcall: spin
		stepper.cpcall(function() spin(3) end)
		stepper.call(stepper.call, stepper.pcall, middle, 2)
	end
end

--> less:
local function less(a, b)
	return a < b
end

--> sort: F table.sort
function programs.sort()
	local t = {}
	for i = 1, 20 do
		t[i] = (i * 7919) % 31
	end
	table.sort(t, less)
	table.sort(t)
end

--> strings: F string.rep, F string.gsub, F string.gmatch, F string.gmatch
-->   iterator, F string.format, F string.sub, F string.byte, F string.char, F
-->   tostring, F tonumber
function programs.strings()
	--> upper: F string.upper
	local s = ("abc"):rep(5):gsub("b", function(x) return x:upper() end)
	for k, v in ("a=1, b=2"):gmatch("(%w+)=(%w+)") do
		s = s .. k .. v
	end
	s = s:gsub("%w", { a = "A" })
	s = string.format("%d %s %5.2f %q", 5, "x", 1.5, s)
	s = s:sub(2, 5) .. s:byte(1) .. string.char(65) .. tostring(12.5)
	return #s + (tonumber("12") or 0)
end

--> libraries: F pairs, F next, F ipairs, F ipairs iterator, F table.concat, F
-->   table.insert, built-in remove, F math.sin, F math.floor, F math.pow, F
-->   math.fmod, F math.max, F math.log, F rawset, F rawget, F select, F
-->   unpack
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

--> collector: F newproxy, F getmetatable, F collectgarbage, F tostring
function programs.collector()
	for _ = 1, 3 do
		local u = newproxy(true)
		--> finalizer (anywhere): spin
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
--> callback: spin
local callback = ffi.cast("void (*)(void)", function() spin(4) end)
--> call_back: F ffi
local function call_back()
	library.stepper_callback(callback)
end
jit.off(call_back)

--> ffi_calls: F ffi
function programs.ffi_calls()
	for _ = 1, 6 do
		library.stepper_add(3)
	end
	local t = ffi.new("int[4]")
	for i = 0, 3 do
		t[i] = i
	end
end

--> ffi_callbacks: call_back
function programs.ffi_callbacks()
	for _ = 1, 3 do
		call_back()
	end
end

--> upvalues: increment
function programs.upvalues()
	local u = 0
	--> increment:
	local function add() u = u + 1 end
	for _ = 1, 10 do
		add()
	end
end

--> loading: F loadstring, F pcall, chunk
function programs.loading()
	local f = loadstring(
		"local x = 1 for i = 1, 5 do x = x + i end return x", "=chunk")
	chunks[#chunks + 1] = f
	f()
	pcall(loadstring, "not lua")
end

--> hooks: F debug.sethook
function programs.hooks()
	--> hook (anywhere): spin
	debug.sethook(function() spin(2) end, "l")
	local x = 1
	x = 2
	debug.sethook()
	return x
end

--> big_stack: deep
function programs.big_stack()
	--> deep: deep
	local function deep(n)
		if n > 0 then
			return 1 + deep(n - 1)
		end
		return 0
	end
	deep(150)
end

--> climb: climb
local function climb(n, ...)
	if n > 0 then
		return 1 + climb(n - 1, ...)
	end
	return 0
end

-- The words that the allocator writes to a free stack lie where the first frames
-- of a coroutine are: with no argument on the link of the vararg frame itself.
--> moved_varargs: F coroutine.wrap, F coroutine.wrap function
function programs.moved_varargs()
	for n = 4, 28, 12 do
		--> moved_body: climb
		local function body(...)
			climb(n, ...)
			return n
		end
		coroutine.wrap(body)()
		coroutine.wrap(body)(1)
		coroutine.wrap(body)(1, 2, 3)
	end
end

--> traces: outer, recurse, F tostring
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

--> side_traces: middle, sum
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

--> snapshots: middle, F tostring
function programs.snapshots()
	local t = {}
	for i = 1, 40 do
		t[i] = { i }
		local r = middle(2)
		t[i][2] = tostring(r)
	end
end

-- A second VM on the same stack, which calls back into the first, which runs
-- the second once more. Its functions have the lines that they have here.
ffi.cdef [[
typedef struct lua_State nested_state;
nested_state *luaL_newstate(void);
void luaL_openlibs(nested_state *L);
int luaL_loadbuffer(nested_state *L, const char *s, size_t n, const char *name);
int lua_pcall(nested_state *L, int argument_count, int result_count, int f);
void lua_getfield(nested_state *L, int index, const char *name);
void lua_pushinteger(nested_state *L, ptrdiff_t n);
]]
local LUA_GLOBALSINDEX = -10002
local nested_line = debug.getinfo(1, "l").currentline
local nested_source = [[
local ffi = require "ffi"
local call = ffi.cast("void (*)(int)", ffi.cast("intptr_t", (...)))
local sum = 0
--> inner_leaf:
function inner_leaf(i) sum = sum + i return sum end
--> inner: inner_leaf, F ffi
function inner(depth)
	for i = 1, 6 do inner_leaf(i) end
	if depth > 0 then call(depth - 1) end
	for i = 1, 3 do inner_leaf(i) end
	return sum
end
jit.off(inner)
]]
nested_source = ("\n"):rep(nested_line + 1) .. nested_source
local nested = ffi.C.luaL_newstate()

--> run_inner: F ffi
local function run_inner(depth)
	ffi.C.lua_getfield(nested, LUA_GLOBALSINDEX, "inner")
	ffi.C.lua_pushinteger(nested, depth)
	ffi.C.lua_pcall(nested, 1, 0, 0)
end
jit.off(run_inner)

--> from_inner: run_inner, F tostring
local nested_call = ffi.cast("void (*)(int)", function(depth)
	local s = tostring(depth)
	run_inner(depth)
	return s
end)

ffi.C.luaL_openlibs(nested)
ffi.C.luaL_loadbuffer(nested, nested_source, #nested_source, "=programs.lua")
ffi.C.lua_pushinteger(nested, tonumber(ffi.cast("intptr_t", nested_call)))
assert(ffi.C.lua_pcall(nested, 1, 0, 0) == 0)

--> nested_vms: run_inner, recurse
function programs.nested_vms()
	-- The stack grows here, not in a callback.
	recurse(40, 1)
	run_inner(2)
end

return programs
