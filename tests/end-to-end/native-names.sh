#!/bin/sh
# SPDX-License-Identifier: MIT
# Names of native code: what a stripped library keeps in a debug file, inlined
# functions and lines, C++ names, a file that was replaced or is below another
# root; MiniDebugInfo, names of Rust, and what the VM itself does.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit
need c++ g++
need objcopy binutils
need strip binutils
need xz xz-utils

# parse OPTION...: stacks of the dump, and what the parser says.
dump=native.bin
parse()
{
	"$parser" "$@" "$dump" \
		>stacks 2>notices || { cat notices; fail "parser"; }
}

# expect PATTERN LEAST: samples of the stacks that match.
expect()
{
	count=$(awk -v pattern="$1" '$0 ~ pattern { sum += $NF }
		END { print sum + 0 }' stacks)
	echo "$count samples match $1"
	[ "$count" -ge "$2" ] || { cat stacks; fail "$count, not $2"; }
}

expect_none()
{
	! grep "$1" stacks || fail "$1 is not to be there"
}

line_of()
{
	grep -n "$1" native.cc | cut -d: -f1
}

cat >native.cc <<'CC'
#include <stdint.h>

namespace work {
struct Engine {
	static uint64_t turn(uint64_t count);
};
}

static inline __attribute__((always_inline)) uint64_t small_step(uint64_t x)
{
	return x ^ (x >> 3) ^ (x << 5); // the step
}

static __attribute__((noinline)) uint64_t hidden_loop(uint64_t count)
{
	volatile uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++)
		sum = small_step(sum + i); // the inlined call
	return sum;
}

uint64_t work::Engine::turn(uint64_t count)
{
	return hidden_loop(count) + 1; // the call
}

extern "C" uint64_t native_entry(uint64_t count)
{
	return work::Engine::turn(count) + 1;
}
CC
c++ -O2 -g -shared -fPIC -Wl,--build-id -o native.so native.cc
objcopy --only-keep-debug native.so native.debug
strip native.so
objcopy --add-gnu-debuglink=native.debug native.so

cat >native.lua <<'LUA'
local misc = require "misc"
local ffi = require "ffi"
ffi.cdef "uint64_t native_entry(uint64_t count);"
local native = ffi.load("./native.so")
assert(misc.sysprof.start { mode = "C", interval = 1, path = "native.bin" })
local start, sum = os.clock(), 0
repeat native.native_entry(100000) until os.clock() - start > 0.5
repeat
	for i = 1, 10000 do sum = sum + i % 7 end
until os.clock() - start > 1
assert(misc.sysprof.stop())
LUA
"$LUAJIT" native.lua

entry='main native.lua:0;native_entry'
parse
expect "$entry;work::Engine::turn;hidden_loop " 300
expect '^_start;' 700
expect_none 'small_step'

parse --lines=all
call=$(line_of 'the call')
step=$(line_of 'the step')
expect "turn native.cc:$call;hidden_loop native.cc:$step " 50

parse --lines=all --inlines
inlined=$(line_of 'the inlined call')
expect "hidden_loop native.cc:$inlined;small_step native.cc:$step " 50

# Another file in its place must not name anything; the debug file is not found
# either, since it lies beside.
mv native.so native.kept
c++ -O1 -g -shared -fPIC -Wl,--build-id -o native.so native.cc
parse
expect "$entry;work::Engine::turn;native 0x[0-9a-f]* " 300
expect_none 'hidden_loop'
grep -q 'native.so: replaced since' notices || fail "replaced, but not said"
rm native.so
parse
expect_none 'hidden_loop'
grep -q 'native.so: not found' notices || fail "gone, but not said"

mkdir -p "root$work"
cp native.kept "root$work/native.so"
cp native.debug "root$work/native.debug"
parse --sysroot="$work/root"
expect "$entry;work::Engine::turn;hidden_loop " 300

# MiniDebugInfo, as Fedora has it: the symbols of a stripped library, compressed
# in a section of its own. They are names of Rust, of both manglings.
cat >mini.cc <<'CC'
#include <stdint.h>

#define HIDDEN static __attribute__((noinline)) uint64_t

HIDDEN legacy(uint64_t) __asm__("_ZN4rust6legacy17h0123456789abcdefE");
HIDDEN newer(uint64_t) __asm__("_RNvCskwGfYPst2Cb_4rust5newer");

HIDDEN newer(uint64_t count)
{
	volatile uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++)
		sum = sum ^ (sum << 5) ^ i;
	return sum;
}

HIDDEN legacy(uint64_t count)
{
	return newer(count) + 1;
}

extern "C" uint64_t mini_entry(uint64_t count)
{
	return legacy(count) + 1;
}
CC
c++ -O2 -shared -fPIC -Wl,--build-id -o mini.so mini.cc
objcopy --only-keep-debug mini.so mini.debug
strip mini.so
sed -e 's/native_entry/mini_entry/' -e 's/native/mini/g' native.lua >mini.lua
dump=mini.bin
"$LUAJIT" mini.lua
parse
expect 'mini_entry;mini 0x[0-9a-f]*;mini 0x[0-9a-f]* ' 300

# Added last, so that nothing but this section can have named them.
objcopy -S --keep-symbol=_ZN4rust6legacy17h0123456789abcdefE \
	--keep-symbol=_RNvCskwGfYPst2Cb_4rust5newer mini.debug mini.data
xz mini.data
objcopy --add-section .gnu_debugdata=mini.data.xz mini.so
parse
expect 'mini_entry;rust::legacy;rust::newer ' 300

# The interpreter has no symbols, but an instruction that it executes.
dump=bytecodes.bin
"$LUAJIT" "$top_srcdir/tests/end-to-end/bytecodes.lua" "$dump" >known
parse
expect 'fields [^;]*bytecodes.lua:[0-9]* ' 200
expect_none ';BC_'
expect_none 'lj_vm trace exit'
parse --bytecodes
expect 'fields [^;]*bytecodes.lua:[0-9]*;BC_TGETS' 200
expect 'concatenate [^;]*bytecodes.lua:[0-9]*;BC_CAT;' 150
expect 'leave [^;]*bytecodes.lua:[0-9]*;lj_vm trace exit' 20
expect '^_start;' 1000
grep -o 'BC_[A-Z0-9]*' stacks | sort -u >seen
grep -vxFf known seen && fail "no such instruction"
exit 0
