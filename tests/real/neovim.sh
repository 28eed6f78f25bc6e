#!/bin/sh
# SPDX-License-Identifier: MIT
# neovim without a screen: LuaJIT beside libuv's signal handlers and threads.
# shellcheck disable=SC1091,SC2034,SC2154
program=nvim
. "${top_srcdir:?run by make check}/tests/real/common.sh"

cat >edit.lua <<'LUA'
local function hot_lua()
	local s = 0
	for i = 1, 1e8 do s = s + i % 7 end
	return s
end
local function hot_editor()
	for i = 1, 20000 do vim.fn.substitute("some text " .. i, "e", "x", "g") end
end
io.open("result", "w"):write(hot_lua(), "\n")
hot_editor()
LUA
HOME=$work "$record" record -i 1 -o dump.bin -- \
	nvim --headless -u NONE -c "luafile edit.lua" -c qa >log 2>&1 ||
	{ cat log; fail "nvim ended with $?"; }
[ "$(cat result)" = 299999997 ] || fail "hot_lua computed $(cat result)"
check_whole dump.bin
at_least hot_lua \
	"$(count dump.bin '^_start;.*;main;.*;lua_pcall;main edit.lua:0;hot_lua edit.lua:1')" 100
# The editor's own C code above the Lua function that called it.
at_least "C code above hot_editor" \
	"$(count dump.bin ';hot_editor edit.lua:6;[^;]+;[^;]+')" 20
