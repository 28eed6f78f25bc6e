#!/bin/sh
# SPDX-License-Identifier: MIT
# A perf.data made of a dump: real perf shows the stacks of the dump, each as
# often, with Lua lines; here, and where only the build ids lead to the objects.
# Native code that a file has a symbol for is where that file was.
# Needs no right to record.
. "${top_srcdir:?run by make check}/tests/common.sh"
programs=$top_srcdir/tests/end-to-end/perf-live
need_luajit
need_perf

# As the folded output: root first, each stack once. Deeper than perf shows
# unless it is asked. A period of more than the interval stands for more samples.
fold_script()
{
	"$PERF" --buildid-dir "$work/cache" script -i "$1" -F ip,sym,period \
		--max-stack 4096 --no-demangle 2>>"$work/warnings" | awk '
		function finish() {
			if (stack != "") count[stack] += samples
			stack = ""
		}
		/^$/ { finish(); next }
		/^ *[0-9]+ *$/ { samples = $1 / 1000000; next }
		/^[ \t]+[0-9a-f]+ / {
			sub(/^[ \t]+[0-9a-f]+ /, "")
			sub(/@@?[A-Z]+_[0-9.]+$/, "") # version of a symbol
			stack = stack == "" ? $0 : $0 ";" stack
		}
		END {
			finish()
			for (stack in count) print stack, count[stack]
		}
	' | LC_ALL=C sort
}

# same FILE FILE WHAT
same()
{
	diff "$1" "$2" >"$work/difference" && return
	complain "$3: dump (<) and perf (>) differ:"
	cut -c 1-300 "$work/difference" | head -n 6
}

cat >run.lua <<'END'
local sysprof = require("misc").sysprof
local work = dofile(arg[1])
assert(sysprof.start { mode = "C", interval = 1, path = "dump" })
local finish = os.clock() + 1
repeat
	work()
until os.clock() >= finish
assert(sysprof.stop())
END

cat >deep.lua <<'END'
local function deep(n)
	if n == 0 then
		local sum = 0
		for i = 1, 100000 do
			sum = sum + i % 3
		end
		return sum
	end
	return 1 + deep(n - 1)
end
return function() deep(300) end
END

for program in recursion callbacks coroutines strings deep; do
	path=$programs/$program.lua
	[ -e "$path" ] || path=$program.lua
	"$LUAJIT" run.lua "$path"
	"$parser" dump | LC_ALL=C sort >folded
	"$parser" --format=perf -o perf.data dump
	fold_script perf.data >perf.folded
	same folded perf.folded "$program"
	total=$(awk '{ n += $NF } END { print n + 0 }' perf.folded)
	[ "$total" -ge 500 ] || complain "$program: only $total samples"
	printf '%-12s %d samples, %d stacks\n' "$program" "$total" \
		"$(wc -l <folded)"
done
grep -q '\(;deep deep\.lua:1\)\{300\}' folded || complain "deep: not deep"

# --- native code is where it was -----------------------------------------------

# objects DATA: mapped files with their build ids.
objects()
{
	"$PERF" script -i "$1" --show-mmap-events -F comm,pid,event,ip \
		2>/dev/null | sed -n 's|.*MMAP2.*<\([0-9a-f]*\)>]: r-xp |\1 |p' |
		sort -u
}

program=$(readlink -f "$(command -v "$LUAJIT")")
objects perf.data >mapped
grep -q "^$(readelf -n "$program" | sed -n 's/.*Build ID: //p') $program$" \
	mapped || {
	complain "luajit is not mapped with its build id:"
	cat mapped
}
"$PERF" report -i perf.data --stdio -g none -s dso,sym 2>/dev/null >dsos
grep -q "${program##*/} *\[\.\] lua_pcall" dsos ||
	complain "lua_pcall is not in luajit"

# A program that is gone: its names are those of the dump.
cp "$program" gone
mv dump deep.dump
./gone run.lua deep.lua
mv dump gone.dump
mv gone root.gone
"$parser" gone.dump 2>/dev/null | LC_ALL=C sort >gone.folded
"$parser" --format=perf -o gone.data gone.dump 2>/dev/null
fold_script gone.data >gone.perf
same gone.folded gone.perf "a program that is gone"
objects gone.data >mapped
grep -q '/gone$' mapped && complain "mapped a file that is gone"
# Another one in its place.
cp "$(command -v cat)" gone
"$parser" --format=perf -o gone.data gone.dump 2>/dev/null
fold_script gone.data >gone.perf
same gone.folded gone.perf "a program that was replaced"
# The right one below another root.
mkdir -p "root/$work"
mv root.gone "root/$work/gone"
"$parser" --sysroot=root gone.dump 2>/dev/null | LC_ALL=C sort >gone.folded
"$parser" --sysroot=root --format=perf -o gone.data gone.dump 2>/dev/null
fold_script gone.data >gone.perf
same gone.folded gone.perf "a program below --sysroot"
objects gone.data >mapped
grep -q " $work/root$work/gone\$" mapped || complain "--sysroot is not mapped"

# --- the kernel's frames -------------------------------------------------------

cat >kernel.lua <<'END'
local sysprof = require("misc").sysprof
local ok, why = sysprof.start { mode = "C", interval = 1, path = "kernel.dump",
	kernel = true }
if not ok then
	print(why)
	os.exit(77)
end
local file = assert(io.open("/proc/self/maps"))
local finish = os.clock() + 1
repeat
	file:seek("set")
	file:read("*a")
until os.clock() >= finish
assert(sysprof.stop())
END
if "$LUAJIT" kernel.lua >kernel.why; then
	"$parser" kernel.dump | LC_ALL=C sort >kernel.folded
	"$parser" --format=perf -o kernel.data kernel.dump
	fold_script kernel.data >kernel.perf
	same kernel.folded kernel.perf "the kernel's frames"
	"$PERF" report -i kernel.data --stdio --no-children -g none -s dso,sym \
		>kernel.report 2>kernel.warnings
	grep -q 'kernel\.data\.kernel *\[k\] ' kernel.report ||
		fail "perf report takes no frame for the kernel's"
	grep 'kernel\.data\.native *\[\.\] .*vfs_read' kernel.report &&
		fail "perf report takes the kernel's code for the program's"
	grep -i 'kernel' kernel.warnings && fail "perf report warns of the kernel"
	mkdir kernel.elsewhere
	mv kernel.data* kernel.elsewhere
	for object in lua native kernel; do
		"$PERF" --buildid-dir "$work/cache" buildid-cache \
			--add "kernel.elsewhere/kernel.data.$object"
	done
	fold_script kernel.elsewhere/kernel.data >kernel.moved
	same kernel.folded kernel.moved "the kernel's frames elsewhere"
else
	echo "without the kernel's frames: $(cat kernel.why)"
fi
[ ! -e perf.data.kernel ] || fail "an object for no frames of the kernel"

# --- several names for one address ------------------------------------------------

cat >aliases.c <<'END'
static volatile unsigned sum;
static __attribute__((used, noinline)) void __local_alias(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
		sum += i;
}
void weak_alias(unsigned) __attribute__((weak, alias("__local_alias")));
END
cat >aliases.lua <<'END'
local ffi = require("ffi")
ffi.cdef "void weak_alias(unsigned rounds);"
local library = ffi.load("./aliases.so")
return function() library.weak_alias(1000000) end
END
if $CC -g -O1 -shared -fPIC -o aliases.so aliases.c 2>aliases.log; then
	"$LUAJIT" run.lua aliases.lua
	"$parser" dump | LC_ALL=C sort >aliases.folded
	"$parser" --format=perf -o aliases.data dump
	fold_script aliases.data >aliases.perf
	same aliases.folded aliases.perf "several names"
	grep -q '_alias [0-9]*$' aliases.perf || complain "no name of aliases.so"
else
	echo "not run: several names for one address (no compiler)"
fi

# --- lines ---------------------------------------------------------------------

"$PERF" report -i perf.data --stdio --no-children -g none -s srcline \
	2>/dev/null | grep -v '^#' >report.srcline
grep -q ' deep\.lua:[45] *$' report.srcline || complain "no Lua lines"
"$PERF" report -i perf.data --stdio -g none -s sym 2>/dev/null >children
grep -q 'deep deep\.lua:1' children || complain "perf report names no function"
"$PERF" annotate -i perf.data --stdio -s 'deep deep.lua:1' 2>/dev/null \
	>annotated
grep -q 'sum = sum + i % 3' annotated || complain "no Lua source in perf annotate"
"$PERF" diff perf.data perf.data >report.diff 2>/dev/null
grep -q '+0\.00%.*deep deep\.lua:1' report.diff || complain "perf diff"

# hotspot shows nothing of events without ids, and ends where it does not know the
# CPU of a sample; it believes the number of CPUs if the command is there.
"$PERF" evlist -v -i perf.data >events 2>/dev/null
grep -q IDENTIFIER events || complain "events have no ids"
"$PERF" report -i perf.data --header-only >header 2>/dev/null
for feature in 'nrcpus online : 1$' 'cmdline : luajit'; do
	grep -q "$feature" header || complain "hotspot would end: no $feature"
done
# Its parser takes the first segment for the start of the file, and then knows every
# function.
readelf -lW perf.data.lua | awk '$1 == "LOAD" { print $2, $3; exit }' |
	grep -q '^0x0* 0x0*$' || complain "hotspot would read wrong names"
perfparser=$(find /usr/lib -name hotspot-perfparser -type f 2>/dev/null |
	head -n 1)
if [ -n "$perfparser" ]; then
	"$perfparser" --input perf.data --output parsed 2>parser.log
	grep -q 'bad feature\|not present' parser.log &&
		complain "hotspot: $(head -n 1 parser.log)"
	grep -aq 'deep deep\.lua:1' parsed || complain "hotspot knows no Lua function"
	grep -aq 'lua_pcall' parsed || complain "hotspot knows no native function"
fi

# --- VM states -----------------------------------------------------------------

"$parser" --format=perf-states -o states.data deep.dump
fold_script states.data | sed 's/;\[\([A-Z]*\)\] \([0-9]*\)$/ \2/' |
	awk '{ n = $NF; sub(/ [0-9]*$/, ""); count[$0] += n }
		END { for (s in count) print s, count[s] }' |
	LC_ALL=C sort >states.folded
same folded states.folded "states"
"$PERF" report -i states.data --stdio --no-children -g none -s sym \
	2>/dev/null | grep -q '\[\(TRACE\|LFUNC\)\]' || complain "no VM state"

# --- another machine -----------------------------------------------------------

mkdir elsewhere
mv perf.data perf.data.lua perf.data.native elsewhere
fold_script elsewhere/perf.data >lost.folded
cmp -s folded lost.folded &&
	complain "the objects are elsewhere, and names were found all the same"
for object in lua native; do
	"$PERF" --buildid-dir "$work/cache" buildid-cache \
		--add "elsewhere/perf.data.$object"
done
fold_script elsewhere/perf.data >moved.folded
same folded moved.folded "elsewhere, by build id"

# --- what is refused -----------------------------------------------------------

"$parser" --format=perf deep.dump >/dev/null 2>message && complain "took no -o"
grep -q 'expected -o FILE' message || complain "no reason for that"
mkdir taken.data.lua
"$parser" --format=perf -o taken.data deep.dump 2>message &&
	complain "succeeded without a companion"
grep -q 'taken.data.*directory' message || complain "no reason for that"
