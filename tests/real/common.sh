# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# Sourced by the tests with real programs, after `program=NAME`, and `package=NAME`
# where that is another.
: "${program:?}"
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit
need "$program" "${package:-}"
unset LUA_CPATH

# count DUMP REGEX: samples whose stack matches, from its root to its leaf.
count()
{
	"$parser" "$1" 2>parser.err | grep -E "$2" | sum_samples
}

# unpack_packages PACKAGE...: from Debian's mirror, below root/; 1 if they cannot be
# had, see log.
unpack_packages()
{
	mkdir packages root
	(cd packages && apt-get download -q "$@") >log 2>&1 || return 1
	for package in packages/*.deb; do
		dpkg -x "$package" root
	done
}

# nginx with Lua cannot be installed beside LuaJIT's development files.
unpack_nginx_lua()
{
	unpack_packages libnginx-mod-http-lua libnginx-mod-http-ndk \
		lua-resty-core lua-resty-lrucache libluajit2-5.1-2
}

# write_dnsdist_files PORT: its settings, a rule, and what asks it. `ask.lua PORT
# TIMES SECONDS` ends when either is over and prints questions and answers.
write_dnsdist_files()
{
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
	cat >dnsdist.conf <<LUA
setLocal("127.0.0.1:$1")
setSecurityPollSuffix("")
newServer("127.0.0.1:9")
dofile("rules.lua")
LUA
	cat >ask.lua <<'LUA'
local ffi = require "ffi"
ffi.cdef [[
typedef struct { uint16_t family, port; uint8_t address[4]; char zero[8]; } place;
int socket(int, int, int); int connect(int, const place *, unsigned);
long send(int, const void *, size_t, int); long recv(int, void *, size_t, int);
int setsockopt(int, int, int, const void *, unsigned);
]]
local port, times, seconds = tonumber(arg[1]), tonumber(arg[2]), tonumber(arg[3])
local to = ffi.new("place", 2, bit.rshift(bit.bswap(port), 16),
	{ 127, 0, 0, 1 })
local fd = ffi.C.socket(2, 2, 0)
local patience = ffi.new("long[2]", 2, 0)
ffi.C.setsockopt(fd, 1, 20, patience, 16)
assert(ffi.C.connect(fd, to, 16) == 0)
local query = "\1\2\1\0\0\1\0\0\0\0\0\0\4test\7example\0\0\1\0\1"
local answer, asked, answers = ffi.new("char[512]"), 0, 0
local ends = os.time() + seconds
repeat
	ffi.C.send(fd, query, #query, 0)
	asked = asked + 1
	if ffi.C.recv(fd, answer, 512, 0) > 0 then answers = answers + 1 end
until asked == times or os.time() >= ends
io.write(asked, " ", answers, "\n")
LUA
}
