#!/bin/sh
# SPDX-License-Identifier: MIT
# The kernel's frames: on top of the call that led there, by name where the kernel
# tells names, in no record of the known format; and what is said where the kernel
# does not tell them.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit

cat >prelude.lua <<'LUA'
sysprof = require "misc.sysprof"
ffi = require "ffi"
ffi.cdef "int usleep(unsigned); int setuid(unsigned);"
-- Spends its time in read(2).
function reads(seconds)
	local file = assert(io.open("/proc/self/maps"))
	local start, sum = os.clock(), 0
	repeat
		for _ = 1, 20 do
			file:seek("set")
			sum = sum + #file:read("*a")
		end
	until os.clock() - start > seconds
	file:close()
	return sum
end
LUA

run()
{
	"$LUAJIT" -l prelude "$@" || fail "$* ended with $?"
}

# share DUMP PATTERN: percent of samples whose stack matches.
share()
{
	"$parser" "$1" | awk -v pattern="$2" '
		{ all += $NF } $0 ~ pattern { found += $NF }
		END { print int(100 * found / all) }'
}

cat >reads.lua <<'LUA'
local ok, message = sysprof.start { mode = "C", interval = 1,
	path = "reads.bin", kernel = true }
if not ok then
	print("SKIP: " .. message)
	os.exit(77)
end
reads(1)
assert(sysprof.stop())
local report = sysprof.report()
assert(report.kernel_threads == 1)
print(report.samples)
LUA
"$LUAJIT" -l prelude reads.lua >samples || {
	status=$?
	cat samples
	exit $status
}

# Names, unless they are hidden: then the frames are there all the same.
named=no
if [ "$(awk '$3 == "vfs_read" { print $1 }' /proc/kallsyms)" != \
	0000000000000000 ] && grep -q ' vfs_read$' /proc/kallsyms; then
	named=yes
fi
if [ $named = yes ]; then
	kernel=';vfs_read'
else
	kernel=';[[]kernel[]]'
fi
[ "$(share reads.bin "reads [^;]*prelude.lua.*;[^;]*read[^;]*;.*$kernel")" -ge 20 ] ||
	fail "no kernel frames on top of read(2): $("$parser" reads.bin | head -n 5)"
[ "$("$parser" reads.bin | sum_samples)" = \
	"$(cat samples)" ] || fail "reads.bin has not all samples"
# Each stack begins in user code, and goes back to none from the kernel.
[ "$(share reads.bin "$kernel.*prelude.lua")" = 0 ] ||
	fail "user code on top of the kernel's"
"$parser" --format=json reads.bin >json
grep -q '"kernel":true' json || fail "the JSON has no kernel frames"
"$parser" --format=html reads.bin >page.html
grep -q 'kernel' page.html || fail "the flame graph has no kernel frames"

# The known format is what it was.
"$parser" --compat reads.bin >compat
! grep -q -e 'vfs_read' -e '\[kernel\]' compat ||
	fail "kernel frames in the records of the known format"

# Events try it; the switches of a thread that sleeps are all in the kernel.
cat >sleeps.lua <<'LUA'
assert(sysprof.start { mode = "C", path = "sleeps.bin",
	clock = "context-switches" })
for _ = 1, 200 do ffi.C.usleep(1000) end
assert(sysprof.stop())
assert(sysprof.report().kernel_threads == 1)
assert(sysprof.start { mode = "C", path = "off.bin",
	clock = "context-switches", kernel = false })
for _ = 1, 200 do ffi.C.usleep(1000) end
assert(sysprof.stop())
assert(sysprof.report().kernel_threads == 0)
-- Of the CPU's clock nobody asked.
assert(sysprof.start { mode = "C", path = "cpu.bin" })
reads(0.2)
assert(sysprof.stop())
assert(sysprof.report().kernel_threads == 0)
LUA
run sleeps.lua
if [ $named = yes ]; then
	[ "$(share sleeps.bin 'nanosleep.*;schedule ')" -ge 80 ] ||
		fail "sleeps.bin: $("$parser" sleeps.bin | head -n 5)"
fi
[ "$(share off.bin 'schedule')" = 0 ] || fail "kernel frames in off.bin"
[ "$(share cpu.bin "$kernel")" = 0 ] || fail "kernel frames in cpu.bin"

# A long call is as many samples as intervals: with one signal a call it would be
# one. Half of the time is a floor that a busy machine keeps, too.
cat >long.lua <<'LUA'
ffi.cdef "void *mmap(void *, size_t, int, int, int, long); int munmap(void *, size_t);"
local bytes = 256 * 2 ^ 20
local function populate()
	local memory = ffi.C.mmap(nil, bytes, 3, 0x8022, -1, 0) -- MAP_POPULATE
	assert(ffi.cast("intptr_t", memory) ~= -1)
	ffi.C.munmap(memory, bytes)
end
local function count(kernel)
	assert(sysprof.start { mode = "C", interval = 1, path = "long.bin",
		kernel = kernel })
	local start, calls = os.clock(), 0
	repeat populate(); calls = calls + 1 until os.clock() - start > 1
	local ms = (os.clock() - start) * 1000
	assert(sysprof.stop())
	return sysprof.report().samples / ms, ms / calls
end
local share, call_ms = count(true)
assert(share > 0.5, "with the kernel " .. share .. " samples a millisecond")
if call_ms > 8 then
	local plain = count(false)
	assert(plain < share / 2, "without " .. plain)
end
LUA
run long.lua

# A child has its own, and a clock that was closed is opened again with them.
cat >events.lua <<'LUA'
ffi.cdef "int fork(void); int waitpid(int, int *, int); int close(int); void _exit(int);"
assert(sysprof.start { mode = "C", interval = 1, path = "events.bin",
	kernel = true, fork = "follow" })
local child = ffi.C.fork()
reads(0.3)
local report = sysprof.report()
assert(report.kernel_threads == 1 and report.samples > 50)
if child == 0 then
	assert(sysprof.stop())
	ffi.C._exit(0)
end
local status = ffi.new("int[1]")
ffi.C.waitpid(child, status, 0)
assert(status[0] == 0)
for fd = 3, 100 do ffi.C.close(fd) end
reads(0.5)
local after = sysprof.report()
assert(after.kernel_threads == 1)
assert(after.samples - report.samples > 100, after.samples)
assert(sysprof.stop())
LUA
run events.lua
for dump in events.bin events.bin.*; do
	[ "$(share "$dump" "$kernel")" -ge 20 ] || fail "no kernel in $dump"
done

# Rights.
cat >refused.lua <<'LUA'
local ok, message = sysprof.start { mode = "C", path = "refused.bin",
	kernel = true }
assert(not ok and message:find("perf_event_paranoid", 1, true), message)
assert(sysprof.start { mode = "C", path = "refused.bin",
	clock = "context-switches" })
for _ = 1, 50 do ffi.C.usleep(1000) end
assert(sysprof.stop())
assert(sysprof.report().kernel_threads == 0)
LUA
if [ "$(id -u)" = 0 ] && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 2 ]
then
	chmod 777 .
	sed -i '1i require "misc.sysprof"; require("ffi").cdef "int setuid(unsigned);"; require("ffi").C.setuid(65534)' \
		refused.lua
	run refused.lua
fi
