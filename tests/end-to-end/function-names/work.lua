-- SPDX-License-Identifier: MIT
-- Functions that are called in every way. Behind each: `defined` and its name
-- where the text says it, `called` and the names by which it is called, any of
-- them; `function` where it has none.

local M = {}

local function burn()
	local sum = 0
	for i = 1, 20000 do sum = sum + i % 7 end
	return sum
end

function of_global() return burn(), 1 end -- defined of_global called of_global
local function of_upvalue() return burn(), 1 end -- defined of_upvalue called of_upvalue
function M.of_field() return burn(), 1 end -- defined M.of_field called of_field
M.deep = {deeper = {of_deep = function() return burn(), 1 end}} -- defined of_deep called of_deep
local Class = {}
Class.__index = Class
function Class:own() return burn(), self end -- defined Class:own called own
local Derived = setmetatable({}, {__index = Class})
Derived.__index = Derived
function Class:inherited() return burn(), self end -- defined Class:inherited called inherited

-- The caller of a function that was reached by a tail call called another one.
local function last() return burn(), 1 end -- defined last called function
function M.tail() return last() end

-- One call, two functions.
local function either() return burn(), 1 end -- defined either called either function
local function neither() return burn(), 1 end -- defined neither called neither function

-- One function, two names.
local function shared() return burn(), 1 end -- defined shared called shared alias other_alias
local alias = shared
M.other_alias = shared

-- A parameter.
local function by_parameter() return burn(), 1 end -- defined by_parameter called parameter
local function call(parameter) return 1 + parameter() end

-- No longer what it was called by.
function M.replaced() M.replaced = of_global; return burn(), 1 end -- defined M.replaced called function

-- Called by no name.
local by_library = function() return burn(), 1 end -- defined by_library called function
local list = {function() return burn(), 1 end} -- defined function called function

function M.run(seconds)
	local of_local = function() return burn(), 1 end -- defined of_local called of_local
	local object, base = setmetatable({}, Derived), setmetatable({}, Class)
	local replaced = M.replaced
	local ends = os.clock() + seconds
	local round = 0
	repeat
		round = round + 1
		of_global()
		of_upvalue()
		M.of_field()
		M.deep.deeper.of_deep()
		base:own(round, round > 1 and "a" or "b")
		object:inherited()
		M.tail();
		(round % 2 == 0 and either or neither)()
		shared()
		alias()
		M.other_alias()
		call(by_parameter)
		M.replaced = replaced
		M.replaced()
		pcall(by_library)
		list[1]()
		of_local()
	until os.clock() > ends
end

return M
