#!/bin/sh
# SPDX-License-Identifier: MIT
# Memory profiles of the LuaJIT of this system: which line allocated what, with
# the JIT on and off, in full, with stacks and sampled; the reading modules; and
# what is left of a profile whose process ends without stop. other-builds.sh has
# EVENTS_ONLY, the modes of the JIT that only the lines of all events are checked
# in.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit
parser=$top_builddir/tools/luajit-parse-memprof
LUA_CPATH="${MODULE_BUILDDIR:-$top_builddir}/lib/.libs/?.so;$top_builddir/tools/.libs/?.so;;"
export LUA_CPATH
cp "$top_srcdir/tests/end-to-end/allocations.lua" .

evidence=tables

# line MARK: number of the line with that marker.
line()
{
	awk -v mark="$1" '$1 == mark { print $2 }' marks
}

# row SECTION MARK: the row of a marked line in a section of the tables.
row()
{
	awk -v title="$1" -v number="$(line "$2")" '
		/^[A-Z]/ { on = $0 == title }
		on && NF > 3 && !/ of / && $(NF - 1) == "line" &&
			$NF == number' tables
}

# expect WHAT GOT LOW HIGH
expect()
{
	awk -v got="${2:-0}" -v low="$3" -v high="$4" \
		'BEGIN { exit !(got + 0 >= low && got + 0 <= high) }' ||
		fail "$1: got '${2:-nothing}', expected $3 to $4"
}

# events SECTION MARK LOW HIGH: events of a marked line.
events()
{
	expect "$1 of $2" "$(row "$1" "$2" | awk '{ print $1 }')" "$3" "$4"
}

record()
{
	"$LUAJIT" "-j$1" allocations.lua "$2" >marks || fail "allocations.lua $*"
	"$parser" dump.bin >tables 2>err || fail "$(cat err)"
}

# --- every event ----------------------------------------------------------------

check_full()
{
	[ ! -s err ] || fail "$(cat err)"
	events ALLOCATIONS leak 20000 20000
	events ALLOCATIONS text 2000 4010
	events ALLOCATIONS coroutine 1000 1000
	events REALLOCATIONS grow 10 20
	# The table that leaks, and nothing of what was dropped.
	held=$(row "HEAP SUMMARY" leak)
	expect "held by leak" "$(echo "$held" | awk '{ print $1 }')" \
		1000000 2000000
	expect "frees of leak" "$(echo "$held" | awk '{ print $3 }')" 0 0
	for mark in garbage text coroutine; do
		expect "held by $mark" "$(row "HEAP SUMMARY" $mark |
			awk '{ print $1 }')" 0 1000
	done
	# A grown table stays with the line that made it.
	expect "held by grow" "$(row "HEAP SUMMARY" grow |
		awk '{ print $1 }')" 32768 140000
	! grep -q 'line 0' tables || fail "a line 0"
	grep -q 'storm0:0 line 1' tables || fail "no storm0"
	grep -q 'storm6:0 line 1' tables || fail "no storm6"
}

for jit in ${EVENTS_ONLY:-off on}; do
	record "$jit" '{ path = "dump.bin" }'
	check_full
	events ALLOCATIONS garbage 20000 20000
	events ALLOCATIONS closure 1000 2000
	bytes=$(wc -c <dump.bin)
	count=$(awk '/ in all$/ && NF >= 5 { sum += $1 } END { print sum }' tables)
	expect "bytes an event" "$((bytes / count))" 8 20
	"$parser" --traces dump.bin >traces
	if [ "$jit" = on ]; then
		grep -q "^.*line $(line leak), TRACE_[0-9]*$" traces ||
			fail "no trace at the line that leaks"
	else
		! grep -q 'TRACE_' traces || fail "a trace without the JIT"
	fi
	# Both balances agree where nothing is resized.
	"$parser" --compat --leak-only dump.bin >compat
	grep -q "^@allocations.lua:$(line leak) holds" compat ||
		fail "compat: $(cat compat)"

	record "$jit" '{ path = "dump.bin", stacks = true }'
	check_full
	"$parser" --format=folded --weight=count dump.bin >folded 2>err
	grep -q "main allocations.lua:0 line [0-9]*;keep allocations.lua:[0-9]* line \
$(line leak) 200[0-9][0-9]$" folded || fail "folded: $(cat folded)"
	grep -q "main allocations.lua:0 line [0-9]*;.*;in_coroutine allocations.lua:\
[0-9]* line $(line coroutine) 10[0-9][0-9]$" folded ||
		fail "the resumer is not below the coroutine: $(cat folded)"
	"$parser" --format=folded --weight=held dump.bin >held
	expect "held by folded leak" \
		"$(awk -v n="line $(line leak) " 'index($0, n) { print $NF }' \
			held)" 1000000 2000000
	for format in html svg; do
		"$parser" --format=$format --weight=bytes dump.bin |
			grep -q "keep allocations.lua" || fail "$format"
	done
done

[ -z "${EVENTS_ONLY:-}" ] || exit 0

# --- sampled ----------------------------------------------------------------------

for jit in off on; do
	record "$jit" '{ path = "dump.bin", sample_bytes = 1024, stacks = true }'
	grep -q 'estimates from' err || fail "no word of estimates: $(cat err)"
	# Some 1200 samples of 20000 events: six times the standard error.
	events ALLOCATIONS leak 16000 24000
	expect "held by leak" "$(row "HEAP SUMMARY" leak |
		awk '{ print $1 }')" 900000 2400000
	expect "held by garbage" "$(row "HEAP SUMMARY" garbage |
		awk '{ print $1 }')" 0 1000
	[ "$(wc -c <dump.bin)" -lt 400000 ] || fail "$(wc -c <dump.bin) bytes"
done

# --- the reading module -----------------------------------------------------------

record off '{ path = "dump.bin" }'
cat >read.lua <<'LUA'
local memprof = require "memprof"
local line = assert(arg[1])
local profile = assert(memprof.parse "dump.bin")
assert(profile.complete and profile.lost_count == 0)
local found
for _, entry in ipairs(profile.alloc) do
	if entry.location:find("line " .. line .. "$") then found = entry end
end
assert(found.event_count == 20000, found.event_count)
local delta = memprof.heap_delta(profile)[found.location]
assert(delta.alloc_count == 20000 and delta.free_count == 0)
assert(delta.held_bytes == found.alloc_bytes)
local events = 0
for _, section in ipairs { "alloc", "realloc", "free" } do
	for _, entry in ipairs(profile[section]) do
		events = events + entry.event_count
	end
end
assert(events == profile.event_count)
local ok, message = memprof.parse "read.lua"
assert(not ok and message:find "read.lua: at offset 0 %(0x0%): expected")
ok, message = memprof.parse "missing.bin"
assert(not ok and message == "cannot open missing.bin: No such file or directory")
assert(not pcall(memprof.parse))
local cut = io.open("cut.bin", "wb")
local all = io.open("dump.bin", "rb"):read "*a"
cut:write(all:sub(1, #all / 2))
cut:close()
ok, message = memprof.parse "cut.bin"
assert(not ok and message:find "the input ends")
local part, why = memprof.parse("cut.bin", { partial = true })
assert(part.event_count > 1000 and not part.complete and why == message)
memprof { "--leak-only", "--compat", "dump.bin" }
error "memprof() came back"
LUA
"$LUAJIT" read.lua "$(line leak)" >got || fail "read.lua"
"$parser" --leak-only --compat dump.bin | cmp -s - got || fail "memprof()"
code=0
"$LUAJIT" -e 'require("memprof")("missing.bin")' 2>err || code=$?
[ $code = 1 ] || fail "memprof() of a missing file: exit code $code"
code=0
"$LUAJIT" -e 'require("sysprof")("dump.bin")' 2>err || code=$?
[ $code = 1 ] || fail "sysprof() of a memory profile: exit code $code"
grep -q 'this is a memory profile' err || fail "$(cat err)"

"$LUAJIT" -e 'local misc = require "misc"
	assert(misc.sysprof.start { mode = "C", interval = 1, path = "s.bin" })
	local function spin() for i = 1, 3e8 do end end
	jit.off(spin) spin()
	assert(misc.sysprof.stop())
	local profile = assert(require "sysprof".parse "s.bin")
	local report, count = misc.sysprof.report(), 0
	for _, sample in ipairs(profile.samples) do
		count = count + sample.count
		assert(#sample.frames > 0 and sample.frames[1].name)
	end
	assert(count == report.samples and count == profile.sample_count)' ||
	fail "sysprof.parse"

# --- without stop -------------------------------------------------------------------

for ending in 'os.exit(0)' 'os.exit(0, true)' 'error "as wanted"' 'return'; do
	rm -f end.bin
	"$LUAJIT" -e "assert(require 'misc.memprof'.start 'end.bin')
		t = {} for i = 1, 5000 do t[i] = { i } end $ending" 2>/dev/null || :
	"$parser" end.bin >tables 2>err || fail "$ending: $(cat err)"
	expect "events before $ending" \
		"$(awk '/ in all$/ && NF >= 5 { print $1; exit }' tables)" \
		5000 6000
done

# --- a slow disk --------------------------------------------------------------------

# A pipe that nobody empties for a while: the program does not wait for it, and
# the dump says what it lacks.
mkfifo slow
{ exec 3<slow; while [ ! -e worked ]; do sleep 0.1; done; cat <&3; } >dump.bin &
reader=$!
"$LUAJIT" -e 'local memprof = require "misc.memprof"
	assert(memprof.start "slow")
	for _ = 1, 20 do
		local t = {}
		for i = 1, 100000 do t[i] = { i } end
	end
	io.open("worked", "w"):close()
	assert(memprof.stop())' || fail "a slow disk"
wait $reader
"$parser" dump.bin >tables 2>err || fail "$(cat err)"
grep -q 'lost [1-9][0-9]* of [0-9]* events, so balances may be wrong' err ||
	fail "no word of losses: $(cat err)"
grep -q 'the writer thread did not keep up' err || fail "$(cat err)"
