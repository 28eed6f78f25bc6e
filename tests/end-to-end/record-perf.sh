#!/bin/sh
# SPDX-License-Identifier: MIT
# luajit-sysprof record --perf: perf record runs beside the command, with the probe
# where that may be set, and without it, or not at all, where it must be.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit
unset LUA_CPATH
evidence=log

cat >program.lua <<'LUA'
local function hot(seconds)
	local start, sum = os.clock(), 0
	repeat
		for i = 1, 10000 do sum = sum + i % 7 end
	until os.clock() - start > seconds
	return sum
end
hot(tonumber(arg[1]))
os.exit(3)
LUA

# --- without perf -------------------------------------------------------------------

mkdir bin
ln -s "$(command -v "$LUAJIT")" bin/luajit
status=0
PATH=$work/bin "$sysprof" record --perf -o dump.bin -- \
	luajit program.lua 0.2 >log 2>&1 || status=$?
[ $status = 3 ] || fail "without perf: status $status"
grep -q 'it is not installed' log || fail "nothing said of a missing perf"
check_whole dump.bin

# --- jitdumps -------------------------------------------------------------------------

reader=$top_srcdir/tests/end-to-end/perf-rules/jitdump.lua
mkdir jitdumps
# jitdump HOW: record ids of the jitdump that a command leaves.
jitdump()
{
	status=0
	PATH=$work/bin "$sysprof" record --perf=jitdump \
		--perf-dir=jitdumps --perf-unwind="$1" -o dump.bin -- \
		luajit program.lua 0.2 >log 2>&1 || status=$?
	[ $status = 3 ] || fail "--perf-unwind=$1: status $status"
	: >records
	for file in jitdumps/jit-*.dump; do
		[ ! -e "$file" ] ||
			"$LUAJIT" "$reader" ids "$file" >>records
	done
	rm -f jitdumps/*
}
jitdump file
grep -qx 4 records || fail "--perf-unwind=file: no rules in the jitdump"
jitdump off
grep -qx 0 records || fail "--perf-unwind=off: no code in the jitdump"
! grep -qx 4 records || fail "--perf-unwind=off: rules in the jitdump"
jitdump on
grep -q 'PERF_UNWIND must be "mapped", "file" or "off", got "on"' log ||
	fail "--perf-unwind=on was not refused"
"$sysprof" record --perf=map --perf-unwind=off -- true 2>log &&
	fail "--perf-unwind without a jitdump was not refused"
grep -q 'need --perf=jitdump' log || fail "no reason for that"

need_perf
if [ "$(command -v "$PERF")" != "$(command -v perf)" ]; then
	ln -s "$(command -v "$PERF")" bin/perf
	PATH=$work/bin:$PATH
fi

# --- as it comes ----------------------------------------------------------------------

# record OPTION... -- SECONDS
record()
{
	status=0
	"$sysprof" record -i 1 -o dump.bin "$@" >log 2>&1 || status=$?
	[ $status = 3 ] || fail "status $status"
	check_whole dump.bin
}

set_before=$(list_probes)
record --perf -- "$LUAJIT" program.lua 1
if ! grep -q 'perf.data: [1-9]' log && grep -q 'perf: it does not record' log; then
	skip "$(grep 'does not record' log)"
fi
grep -q 'perf.data: [1-9][0-9]* bytes' log || fail "no word of perf.data"
if grep -q 'the probe cannot be set' log; then
	echo "without the probe: $(grep 'cannot be set' log)"
else
	"$PERF" script -i perf.data -F comm,event,ip,sym >stacks 2>script.err
	samples=$(grep -c 'luajit_sysprof:sample' stacks || true)
	[ "$samples" -ge 20 ] || fail "only $samples samples of the probe"
	named=$(grep -c ' hot program.lua:1' stacks || true)
	[ "$named" -ge $((samples / 2)) ] ||
		fail "hot() is in $named of $samples stacks"
fi
[ "$(list_probes)" = "$set_before" ] || fail "a probe was left: $(list_probes)"

# A supervisor's signal ends all three.
rm dump.bin
"$sysprof" record --perf -i 1 -o dump.bin -- \
	"$LUAJIT" program.lua 30 >log 2>&1 &
recorder=$!
for _ in $(seq 60); do
	[ ! -s dump.bin ] || break
	sleep 0.5
done
sleep 2
kill $recorder
status=0
wait $recorder || status=$?
[ $status = 143 ] || fail "status $status after SIGTERM"
grep -q 'perf.data: [1-9]' log || fail "no perf.data after SIGTERM"
check_whole dump.bin

# --- without rights -----------------------------------------------------------------------

chmod 755 .
if [ "$(id -u)" = 0 ] &&
	setpriv --reuid=65534 test -x "$sysprof" 2>/dev/null; then
	mkdir -m 777 other
	cd other
	status=0
	HOME=$PWD setpriv --reuid=65534 --clear-groups \
		"$sysprof" record --perf -i 1 -o dump.bin -- \
		"$LUAJIT" ../program.lua 1 >../log 2>&1 || status=$?
	cd ..
	# A library that is built where others may not read is none of perf's.
	if [ $status = 3 ]; then
		grep -q 'the probe cannot be set: only root' log ||
			fail "an ordinary user has set a probe"
		grep -q -e 'perf.data: [1-9]' -e 'perf: it does not record' \
			log || fail "no word of perf"
	fi
fi
