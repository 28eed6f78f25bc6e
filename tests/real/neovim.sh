#!/bin/sh
# SPDX-License-Identifier: MIT
# neovim without a screen: LuaJIT beside libuv's signal handlers and threads.
program=nvim
package=neovim
. "${top_srcdir:?run by make check}/tests/real/common.sh"

cat >edit.lua <<'LUA'
local function hot_lua()
	local s = 0
	for i = 1, 1e6 do s = s + i % 7 end
	return s
end
local function hot_editor()
	for i = 1, 100 do vim.fn.substitute("some text " .. i, "e", "x", "g") end
end
-- Each for 0.6 s of CPU time, however fast the machine is.
local sum
local from = os.clock()
repeat sum = hot_lua() until os.clock() - from > 0.6
io.open("result", "w"):write(sum, "\n")
from = os.clock()
repeat hot_editor() until os.clock() - from > 0.6
LUA
HOME=$work "$sysprof" record -i 1 -o dump.bin -- \
	nvim --headless -u NONE -c "luafile edit.lua" -c qa >log 2>&1 ||
	{ cat log; fail "nvim ended with $?"; }
[ "$(cat result)" = 2999998 ] || fail "hot_lua computed $(cat result)"
check_whole dump.bin
at_least hot_lua \
	"$(count dump.bin '^_start;.*;main;.*;lua_pcall;main edit.lua:0;hot_lua edit.lua:1')" 100
# The editor's own C code above the Lua function that called it.
at_least "C code above hot_editor" \
	"$(count dump.bin ';hot_editor edit.lua:6;[^;]+;[^;]+')" 20
