#!/bin/bash
# SPDX-License-Identifier: MIT
# Names of Lua functions: off the source where it is there and the right one, else
# by what they are called, and never a wrong one.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit
sources=$top_srcdir/tests/end-to-end/function-names
export LUA_CPATH="${MODULE_BUILDDIR:-$top_builddir}/lib/.libs/?.so;;"
cp "$sources/work.lua" . # names have no long path then

evidence=names

# profile JIT FILE [CODE]: the functions of work.lua into names, "NAME FILE:LINE".
profile()
{
	"$LUAJIT" "$1" "$sources/run.lua" "$2" names.bin ${3+"$3"} >log 2>&1 ||
		fail "run.lua $*: $(cat log)"
	"$parser" names.bin >folded
	[ "$(sum_samples <folded)" -ge 200 ] ||
		skip "the clock of this machine gives too few samples"
	sed 's/ [0-9]*$//' folded | tr ';' '\n' | sort -u |
		grep 'work\.' >names || fail "$*: no names"
}

# expect WORD: each function has one of the names behind the word in work.lua.
expect()
{
	awk -v word="$1" '
		function wrong(text)
		{
			print "FAIL: " text
			failed = 1
		}
		FNR == NR {
			for (i = 1; i <= NF; i++) {
				if ($i == "defined" || $i == "called")
					reading = $i
				else if (reading == word)
					allowed[FNR] = allowed[FNR] " " $i " "
			}
			reading = ""
			next
		}
		{
			sub(/.*:/, "", $2)
			if (!($2 in allowed))
				next
			seen[$2] = 1
			if (index(allowed[$2], " " $1 " ") == 0)
				wrong("line " $2 " is called " $1)
		}
		END {
			for (line in allowed)
				if (!(line in seen))
					wrong("line " line " was not seen")
			exit failed
		}' <(sed 's/.*-- defined/defined/; t; s/.*//' work.txt) names ||
		fail "$2"
}

cat >dump.lua <<'LUA'
local file = assert(io.open(arg[1], "wb"))
file:write(string.dump(assert(loadfile("work.lua")), arg[2] == "strip"))
assert(file:close())
LUA

cp work.lua work.txt
for jit in -joff -jon; do
	profile $jit work.lua
	expect defined "$jit, from the source"
done

"$LUAJIT" dump.lua work.out
"$LUAJIT" dump.lua work.stripped strip

# The source is not there: by their calls.
mv work.lua away.lua
for jit in -joff -jon; do
	profile $jit work.out
	expect called "$jit, from bytecode"
done

# Without debug information there are no lines, and no variables' names.
for jit in -joff -jon; do
	profile $jit work.stripped
	for name in of_global of_field of_deep own inherited run; do
		grep -q "^$name work.stripped:0" names ||
			fail "$jit, stripped: no $name"
	done
	grep -vE '^(of_global|of_field|of_deep|own|inherited|run|tail|other_alias|function) ' \
		names && fail "$jit, stripped: another name"
done

# Another source is there, with other functions in the same lines.
sed -E 's/(of_deep|by_library|of_local) = function/wrong_\1 = function/
	s/^(local )?function (M\.|Class:)?/&wrong_/' work.txt >work.lua
[ "$(grep -c wrong_ work.lua)" -ge 15 ] || fail "work.lua is not another"
profile -jon work.out
grep wrong names && fail "a name of another source"
expect called "another source"

# The same, one line further down.
sed -i '1i-- another line' work.lua
profile -jon work.out
grep wrong names && fail "a name of a longer source"
expect called "a longer source"

# The source has changed since the program has begun.
cp work.txt work.lua
profile -jon work.lua '
	-- Longer than a tick of the clock by which a process knows its start.
	local ends = os.time() + 2
	repeat until os.time() >= ends
	local file = assert(io.open("work.lua", "a"))
	file:write("-- changed\n")
	file:close()'
expect called "a source that has changed"

# Functions that a template makes come and go at the same addresses, and are alike
# but for their names.
cat >template.lua <<'LUA'
local sysprof = require "misc.sysprof"
local template = [[
	local M = {}
	function M.%s(count)
		local sum = 0
		for i = 1, count do sum = sum + i %% 7 end
		return sum
	end
	return function() local sum = M.%s(3000) return sum, 1 end]]
assert(sysprof.start {mode = "L", interval = 0.2, path = "names.bin"})
local ends, round, place = os.clock() + 1.5, 0, nil
repeat
	round = round + 1
	local name = round % 2 == 0 and "even" or "odd_"
	place = loadstring(template:format(name, name), "=template")()
	if name == "even" then
		local function run_even() return place(), 1 end
		run_even()
	else
		local function run_odd() return place(), 1 end
		run_odd()
	end
	if round % 5 == 0 then collectgarbage() end
until os.clock() > ends
assert(sysprof.stop())
LUA
for jit in -joff -jon; do
	"$LUAJIT" $jit template.lua || fail "template.lua $jit"
	"$parser" names.bin >names
	for name in even odd; do
		grep -q "run_$name template.lua.*;${name}_* template:" names ||
			fail "template.lua $jit: no $name"
	done
	grep -E 'run_even.*;odd_ template:|run_odd.*;even template:' names &&
		fail "template.lua $jit: the name of a function that is gone"
done

# A memory profile names them, too. other-builds.sh has modes of the JIT in which
# lines of allocations are known.
cat >memory.lua <<'LUA'
local memprof = require "misc.memprof"
local M = loadstring(string.dump(assert(loadstring([[
	local M = {}
	local function of_upvalue(i) return {i} end
	function M.of_field(i) local t = of_upvalue(i) return {t} end
	function M.not_called(i) return pcall(function() return {i} end) end
	return M]], "=made"))))()
assert(memprof.start(loadstring("return " .. arg[1])()))
for i = 1, 1000 do
	local t = M.of_field(i)
	M.not_called(t)
end
assert(memprof.stop())
LUA
for jit in ${MEMORY_MODES:-off on}; do
	for stacks in false true; do
		"$LUAJIT" "-j$jit" memory.lua \
			"{ path = 'memory.bin', stacks = $stacks }" ||
			fail "memory.lua"
		"$top_builddir/tools/luajit-parse-memprof" memory.bin |
			awk '/^ALLOCATIONS/ { on = 1 } /^$/ { on = 0 } on && /made/ {
				print $4, $5 }' | sort -u >names
		printf '%s\n' 'function made:4' 'not_called made:4' \
			'of_field made:3' 'of_upvalue made:2' |
			cmp -s - names || fail "memory.lua -j$jit $stacks"
	done
done
