#!/bin/sh
# SPDX-License-Identifier: MIT
# Labels of coroutines (labels.lua) part the samples as the program parts its
# work, JIT off and on.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit
cp "$top_srcdir/tests/end-to-end/labels.lua" . # names have no long path then
LUA_CPATH="$top_builddir/lib/.libs/?.so;$top_builddir/tools/.libs/?.so;;"
export LUA_CPATH

evidence=folded

fold()
{
	"$parser" --guest-only "$@" labels.bin >folded 2>err
}

# Rounds that take about 3 seconds of CPU time, in an even number.
rounds_of()
{
	"$LUAJIT" "$1" -e 'local start, rounds = os.clock(), 0
		repeat
			for _ = 1, 100 do
				local sum = 0
				for i = 1, 20000 do sum = sum + i % 7 end
			end
			rounds = rounds + 1
		until os.clock() - start > 0.3
		print(2 * math.ceil(rounds * 5))'
}

check()
{
	"$LUAJIT" "$1" labels.lua "$(rounds_of "$1")" >log ||
		fail "labels.lua $1: $(cat log)"
	fold --group=label
	all=$(awk '$1 == "samples" { print $2 }' log)
	[ "$(sum_samples <folded)" = "$all" ] || fail "not $all samples"
	[ "$all" -ge 500 ] ||
		skip "the clock of this machine gives only $all samples"
	grep ^expect log | tr '\t' ' ' >expected
	[ -s expected ] || fail "nothing is expected: $(cat log)"
	while read -r _ percent label; do
		# By the environment, since -v would read the backslash.
		share=$(LABEL=$label awk '
			{ all += $NF }
			index($0, ENVIRON["LABEL"] ";") == 1 { found += $NF }
			END { print 100 * found / all }' folded)
		echo "$1: $label $percent % -> $share %"
		awk -v a="$percent" -v b="$share" \
			'BEGIN { exit !(a - b <= 3 && b - a <= 3) }' ||
			fail "more than three points"
	done <expected
	grep -q gone folded && fail "a label that was taken away"

	# The one that was resumed has the label, and is no other function.
	nested='main labels.lua:0;.*;nest labels.lua:[0-9]*;.*'
	grep -F '[label a\x3bb];' folded | grep -q "$nested;inherit labels.lua" ||
		fail "nothing is inherited"
	grep -F '[label inner];' folded | grep -q "$nested;rename labels.lua" ||
		fail "the innermost label does not count"
	grep -F '[no label];' folded | grep -qE '(nest|inherit|search) ' &&
		fail "a label is missing"

	got=$("$LUAJIT" -e 'local sum, seen = 0, {}
		for _, sample in ipairs(require "sysprof".parse "labels.bin"
			.samples) do
			seen[sample.label or "none"] = true
			if sample.label == "a;b" then sum = sum + sample.count end
		end
		assert(seen["/search"] and seen["/item"] and seen.inner)
		assert(seen.none and not seen.gone)
		print(sum)')
	[ "$got" = "$(grep -F '[label a\x3bb];' folded | sum_samples)" ] ||
		fail "sysprof.parse counts $got"
	fold --group=label --label='^/'
	[ "$(cut -d';' -f1 folded | sort -u | tr '\n' ' ')" = \
		'[label /item] [label /search] ' ] || fail "--label"
}

check -joff
check -jon

# A coroutine that gets the address of one that was collected has no label, before
# the label itself is collected, too.
cat >dropped.lua <<'LUA'
local sysprof = require "misc.sysprof"

local function burn(seconds)
	local ends = os.clock() + seconds
	repeat
		local sum = 0
		for i = 1, 1000 do sum = sum + i % 7 end
	until os.clock() > ends
end

local function labelled()
	assert(sysprof.label("dropped"))
	burn(0.001)
end

local function address_of_dropped()
	local thread = coroutine.create(labelled)
	assert(coroutine.resume(thread))
	return tostring(thread)
end

local function inherits()
	burn(0.02)
end

local function keeps()
	assert(sysprof.label("kept"))
	coroutine.yield()
	burn(0.02)
end

assert(sysprof.start {mode = "L", interval = 0.5, path = "labels.bin"})
local keeping, inherited_count = {}, 0
for round = 1, 40 do
	local address = address_of_dropped()
	collectgarbage()
	collectgarbage("stop")
	for _ = 1, 200 do
		local thread = coroutine.create(inherits)
		if tostring(thread) == address then
			inherited_count = inherited_count + 1
			assert(coroutine.resume(thread))
			break
		end
	end
	collectgarbage("restart")
	-- Labels outlive collections as long as their coroutines do.
	keeping[round] = coroutine.create(keeps)
	assert(coroutine.resume(keeping[round]))
	if round > 5 then assert(coroutine.resume(keeping[round - 5])) end
end
assert(sysprof.stop())
print(inherited_count)
LUA

check_dropped()
{
	inherited=$("$LUAJIT" "$1" dropped.lua) || fail "dropped.lua $1"
	[ "$inherited" -ge 10 ] ||
		fail "$1: only $inherited coroutines got an address again"
	fold --group=label
	grep -q '^\[no label\];.*;inherits dropped.lua' folded ||
		fail "$1: nothing inherits"
	grep ';inherits dropped.lua' folded | grep -v '^\[no label\];' &&
		fail "$1: the label of a coroutine that is gone"
	grep -q '^\[label kept\];.*;keeps dropped.lua' folded ||
		fail "$1: no label is kept"
	grep '^\[no label\];.*;keeps dropped.lua.*burn' folded &&
		fail "$1: a label is lost"
	grep -q '^\[label dropped\];.*;labelled dropped.lua' folded ||
		fail "$1: no label of a coroutine that ends"
}

check_dropped -joff
check_dropped -jon
