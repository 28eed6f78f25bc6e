#!/bin/sh
# SPDX-License-Identifier: MIT
# luajit-sysprof record -p with several processes, with dumps that rotate, and with
# perf record beside it.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit
pids=
unset LUA_CPATH
evidence=log

clean_up()
{
	# shellcheck disable=SC2086
	[ -z "$pids" ] || kill -9 $pids 2>/dev/null || :
}

# start COMMAND...: in the background, as $pid.
start()
{
	"$@" >out 2>&1 &
	pid=$!
	pids="$pids $pid"
}

# attach OPTION...: its status in $status. On a busy machine the default overhead would
# lengthen the interval, and samples count for more than one.
attach()
{
	status=0
	timeout 100 "$sysprof" record -i 1 --overhead=100 -o dump.bin "$@" \
		>log 2>&1 || status=$?
}

# attach_in_background OPTION...: $recorder samples when it returns.
attach_in_background()
{
	"$sysprof" record -i 1 --overhead=100 -o dump.bin "$@" >log 2>&1 &
	recorder=$!
	pids="$pids $recorder"
	wait_for "the start" grep -q 'Ctrl-C ends it' log
}

# wait_for WHAT COMMAND...: for a minute at most.
wait_for()
{
	what=$1
	shift
	for _ in $(seq 240); do
		! "$@" || return 0
		sleep 0.25
	done
	fail "waited in vain for $what"
}

# sum NAME DUMP...: samples of the function in all.
sum()
{
	name=$1
	shift
	for dump; do
		"$parser" --include="$name" "$dump" \
			2>>parser.err
	done | sum_samples
}

cat >program.lua <<'LUA'
local function hot(seconds)
	local start, sum = os.clock(), 0
	repeat
		for i = 1, 10000 do sum = sum + i % 7 end
	until os.clock() - start > seconds
	return sum
end
-- Samples of it are large.
local function deep(depth)
	if depth > 0 then return 1 + deep(depth - 1) end
	return hot(0.1)
end
if arg[1] == "deep" then
	jit.off()
	for _ = 1, 10 * tonumber(arg[2]) do deep(100) end
elseif arg[1] == "parent" then
	local ffi = require "ffi"
	ffi.cdef "int fork(void); int pause(void);"
	local child = ffi.C.fork()
	if child ~= 0 then
		local file = io.open("child", "w")
		file:write(child)
		file:close()
		ffi.C.pause()
	end
	hot(tonumber(arg[2]))
else
	hot(tonumber(arg[2]))
end
LUA

# --- several processes ---------------------------------------------------------------

start "$LUAJIT" program.lua hot 100
first=$pid
start "$LUAJIT" program.lua hot 100
second=$pid
sleep 0.5
attach -d 1 -p "$first,$second"
case $(cat log) in
*ptrace_scope* | *CAP_SYS_PTRACE* | *"not permitted"*)
	skip "$(cat log)" ;;
esac
[ $status = 0 ] || fail "status $status of two"
for pid in $first $second; do
	check_whole "dump.bin.$pid"
	[ "$(sum 'hot program.lua:1' "dump.bin.$pid")" -ge 5 ] ||
		fail "process $pid has too few samples"
done
[ ! -e dump.bin ] || fail "a dump of nobody"
rm dump.bin.*
# One of them cannot be, the other one is.
start sleep 100
attach -d 1 -p "$first,$pid"
[ $status = 1 ] || fail "status $status where one is refused"
grep -q "process $pid has no LuaJIT" log || fail "no reason for $pid"
check_whole "dump.bin.$first"
[ ! -e "dump.bin.$pid" ] || fail "a dump of a process that was refused"
rm dump.bin.*
# It goes on for the one that is left.
attach_in_background -p "$first,$second"
wait_for "the second" grep -q "process $second: .*Ctrl-C ends it" log
kill "$second"
sleep 1
kill -0 $recorder || fail "it has ended with one of two"
kill -INT $recorder
wait $recorder || fail "status after one of two has ended"
check_whole "dump.bin.$first"
check_whole "dump.bin.$second"
rm dump.bin.*
attach -p "$first,$first"
[ $status = 2 ] || fail "status $status of one twice"

# --- children -------------------------------------------------------------------------

start sh -c "'$LUAJIT' program.lua hot 100 & echo \$! >child; wait"
wait_for "a child" test -s child
sleep 0.5
pids="$pids $(cat child)"
attach -d 1 -p "$pid"
[ $status = 1 ] || fail "status $status of a shell"
grep -q "runs no Lua itself, but its children do: -p $(cat child) " log ||
	fail "the child of a shell"
[ ! -e dump.bin ] || fail "a dump of a shell"
rm child
start "$LUAJIT" program.lua parent 100
wait_for "a child" test -s child
sleep 0.5
pids="$pids $(cat child)"
attach -d 1 -p "$pid"
[ $status = 0 ] || fail "status $status of a parent"
grep -q "which are left alone: -p $(cat child) " log || fail "the child"
grep -q "was idle: no samples" log || fail "no word of a parent that sleeps"
attach -d 1 -p "$(cat child),$pid"
! grep -q 'left alone' log || fail "a child that is given is left alone"
rm dump.bin*

# --- dumps that rotate ------------------------------------------------------------------

# check_rotated PID: all its dumps, which are the arguments of the shell afterwards.
check_rotated()
{
	for dump in dump.bin."$1".*; do
		check_whole "$dump"
		expr "$dump" : "dump\.bin\.$1\.20[0-9]*T[0-9]*\.[0-9]*Z\$" \
			>/dev/null || fail "$dump: not named by process and time"
	done
	[ ! -e dump.bin ] || fail "a dump that does not rotate"
}

attach -d 4 --rotate=1s -p "$first"
[ $status = 0 ] || fail "status $status of a rotation"
check_rotated "$first"
set -- dump.bin.*
[ $# -ge 2 ] || fail "$# dumps"
grep -q "dump.bin.$first.TIME: $# dumps, .* bytes, $(sum . "$@") samples" log ||
	fail "$# dumps with $(sum . "$@") samples"
[ "$(sum 'hot program.lua:1' "$@")" -ge 20 ] || fail "too few samples of hot"
rm dump.bin.*

# A recorder that sleeps makes no dumps; it catches up.
attach_in_background --rotate=1s -p "$first"
kill -STOP $recorder
sleep 4
kill -CONT $recorder
sleep 3
kill -TERM $recorder
wait $recorder || fail "status of a recorder that slept"
check_rotated "$first"
set -- dump.bin.*
[ $# -ge 2 ] || fail "$# dumps of a recorder that slept"
rm dump.bin.*
# One that is killed leaves whole ones.
attach_in_background --rotate=1s -p "$first"
sleep 2.5
kill -9 $recorder
wait $recorder 2>/dev/null || true
wait_for "the end of the profile" \
	grep -q 'Threads:	1$' /proc/"$first"/status
check_rotated "$first"
rm dump.bin.*

start "$LUAJIT" program.lua deep 100
attach_in_background -i 0.1 --overhead=90 --rotate=64K --rotate-limit=1M \
	-p "$pid"
set -- dump.bin."$pid".*
oldest=$1
is_gone() { [ ! -e "$1" ]; }
wait_for "the oldest dump to go" is_gone "$oldest"
kill -INT $recorder
wait $recorder || fail "status of many dumps"
check_rotated "$pid"
[ "$(cat dump.bin."$pid".* | wc -c)" -le 1310720 ] ||
	fail "$(cat dump.bin."$pid".* | wc -c) bytes of dumps, allowed are 1 MiB"
kill "$pid"
rm dump.bin.*

# The process may write nowhere here.
if [ "$(id -u)" = 0 ] && setpriv --reuid=65534 test -r \
	"$top_builddir/preload/.libs/libluajit-sysprof-agent.so" 2>/dev/null; then
	mkdir -m 700 place
	start setpriv --reuid=65534 --regid=65534 --clear-groups "$LUAJIT" \
		-e 'local s = os.clock() repeat until os.clock() - s > 100'
	sleep 0.5
	attach -d 3 --rotate=1s -o place/dump.bin -p "$pid"
	[ $status = 0 ] || fail "status $status of a process without rights"
	set -- place/dump.bin."$pid".*
	[ $# -ge 2 ] || fail "$# dumps of a process without rights"
	for dump; do
		check_whole "$dump"
	done
	kill "$pid"
fi

# --- perf ----------------------------------------------------------------------------------

mkdir bin
PATH=$work/bin "$sysprof" record -i 1 -o dump.bin -d 1 --perf \
	-p "$first" >log 2>&1 || fail "without perf"
grep -q 'it is not installed' log || fail "nothing said of a missing perf"
check_whole dump.bin

need_perf
if [ "$(command -v "$PERF")" != "$(command -v perf)" ]; then
	ln -s "$(command -v "$PERF")" bin/perf
	PATH=$work/bin:$PATH
fi

# check_perf NAME LEAST PID...: each process has the function in perf's stacks.
check_perf()
{
	name=$1
	least=$2
	shift 2
	grep -q 'perf.data: [1-9][0-9]* bytes' log || fail "no word of perf.data"
	! grep -q 'the probe cannot be set' log || return 0
	for process; do
		"$PERF" script -i perf.data --pid "$process" \
			-F comm,event,ip,sym >stacks 2>script.err
		samples=$(grep -c 'luajit_sysprof:sample' stacks || true)
		named=$(grep -c "$name" stacks || true)
		[ "$samples" -ge "$least" ] ||
			fail "$process: $samples samples of the probe"
		[ "$named" -ge $((samples / 2)) ] ||
			fail "$process: $name is in $named of $samples stacks"
	done
}

set_before=$(list_probes)
start "$LUAJIT" program.lua hot 100
second=$pid
sleep 0.5
rm -f dump.bin*
attach -d 2 --perf -p "$first,$second"
[ $status = 0 ] || fail "status $status with perf"
if ! grep -q 'perf.data: [1-9]' log && grep -q 'perf: it does not record' log; then
	skip "all but --perf was good: $(grep 'does not record' log)"
fi
check_whole "dump.bin.$first"
check_whole "dump.bin.$second"
check_perf ' hot program.lua:1' 5 "$first" "$second"

for number in INT TERM; do
	rm -f dump.bin* perf.data*
	attach_in_background --perf -p "$first"
	sleep 2
	kill -$number $recorder
	wait $recorder || fail "status after SIG$number"
	check_whole dump.bin
	check_perf ' hot program.lua:1' 5 "$first"
done
# The process ends first.
rm -f dump.bin* perf.data*
attach_in_background --perf -p "$second"
sleep 2
kill "$second"
wait $recorder || fail "status after the end of the process"
check_whole dump.bin
check_perf ' hot program.lua:1' 5 "$second"
# All three in one.
rm -f dump.bin* perf.data*
attach -d 3 --perf=lines --rotate=1 -p "$first"
[ $status = 0 ] || fail "status $status of all at once"
check_rotated "$first"
check_perf ' hot program.lua:1' 5 "$first"
# Nothing was recorded, so nothing is left.
rm -f dump.bin* perf.data*
attach --perf -d 1 -m X -p "$first"
[ $status = 1 ] || fail "status $status of a refused profile"
[ ! -e perf.data ] || fail "a recording of nothing"
[ ! -e dump.bin ] || fail "a dump of nothing"
[ "$(list_probes)" = "$set_before" ] || fail "a probe was left: $(list_probes)"
kill "$first"
