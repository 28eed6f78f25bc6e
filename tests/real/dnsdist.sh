#!/bin/sh
# SPDX-License-Identifier: MIT
# dnsdist: a name server whose rules are Lua, asked over the loopback interface and
# ended by SIGTERM.
# shellcheck disable=SC1091,SC2034,SC2154
program=dnsdist
. "${top_srcdir:?run by make check}/tests/real/common.sh"
: "${LUAJIT:=luajit}"
port=53$(($$ % 90 + 10))

cat >dnsdist.conf <<LUA
setLocal("127.0.0.1:$port")
setSecurityPollSuffix("")
newServer("127.0.0.1:9")
dofile("rules.lua")
LUA
cat >rules.lua <<'LUA'
local function hot_rule()
	local s, from = 0, os.clock()
	repeat
		for i = 1, 10000 do s = s + i % 7 end
	until os.clock() - from > 0.002
	return s
end
addAction(AllRule(), LuaAction(function(query)
	hot_rule()
	return DNSAction.Refused, ""
end))
LUA
cat >ask.lua <<'LUA'
local ffi = require "ffi"
ffi.cdef [[
typedef struct { uint16_t family, port; uint8_t address[4]; char zero[8]; } place;
int socket(int, int, int); int connect(int, const place *, unsigned);
long send(int, const void *, size_t, int); long recv(int, void *, size_t, int);
int setsockopt(int, int, int, const void *, unsigned);
]]
local port, times = tonumber(arg[1]), tonumber(arg[2])
local to = ffi.new("place", 2, bit.rshift(bit.bswap(port), 16),
	{ 127, 0, 0, 1 })
local fd = ffi.C.socket(2, 2, 0)
local patience = ffi.new("long[2]", 1, 0)
ffi.C.setsockopt(fd, 1, 20, patience, 16)
assert(ffi.C.connect(fd, to, 16) == 0)
local query = "\1\2\1\0\0\1\0\0\0\0\0\0\4test\7example\0\0\1\0\1"
local answer, answers = ffi.new("char[512]"), 0
for _ = 1, times do
	ffi.C.send(fd, query, #query, 0)
	if ffi.C.recv(fd, answer, 512, 0) > 0 then answers = answers + 1 end
end
print(answers)
LUA
"$record" record -i 1 -o dump.bin -- dnsdist --supervised --disable-syslog \
	-C dnsdist.conf >log 2>&1 &
recorder=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
	[ "$("$LUAJIT" ask.lua $port 1 2>/dev/null)" = 1 ] && break
	sleep 0.5
done
answers=$("$LUAJIT" ask.lua $port 500)
kill $recorder
wait $recorder || true
[ "$answers" -ge 400 ] || { cat log; fail "only $answers answers"; }
check_whole dump.bin
at_least hot_rule \
	"$(count dump.bin ';start_thread;.*;processQuery;.*;lua_pcall;.* rules.lua:8;hot_rule rules.lua:1')" 100
