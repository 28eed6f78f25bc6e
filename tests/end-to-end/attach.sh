#!/bin/sh
# SPDX-License-Identifier: MIT
# luajit-sysprof record -p: processes that run already are profiled, wherever they
# are stopped for it, and go on as if nothing had been; others are refused.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit
host=$top_builddir/tests/end-to-end/attach_host
pids=
unset LUA_CPATH
evidence=log

clean_up()
{
	# shellcheck disable=SC2086
	[ -z "$pids" ] || kill -9 $pids 2>/dev/null || :
}

# start COMMAND...: in the background, as $pid, with its output in out.
start()
{
	"$@" >out 2>&1 &
	pid=$!
	pids="$pids $pid"
}

# finish STATUS: the last one has ended with it.
finish()
{
	status=0
	wait "$pid" || status=$?
	[ $status = "$1" ] || { cat out; fail "$pid ended with $status, not $1"; }
}

attach()
{
	timeout 60 "$sysprof" record -i 1 -o dump.bin "$@" >log 2>&1
}

# check DUMP NAME LEAST: it is whole, and has so many samples of the function; few,
# since the machine may have other work.
check()
{
	check_whole "$1"
	samples=$("$parser" --include="$2" "$1" 2>parser.err | sum_samples)
	[ "$samples" -ge "$3" ] || fail "$1 has only $samples samples of $2"
}

# What a process is made of, as far as others see it. 33 is a signal of the C
# library's own, which it handles from its first thread on.
describe()
{
	# A library that is being loaded is a descriptor, too.
	for _ in 1 2 3 4 5 6 7 8; do
		find /proc/"$1"/fd -type l | wc -l
	done | sort -n | sed 's/^/descriptors /;q'
	grep -E '^(Threads|SigBlk):' /proc/"$1"/status
	grep -E '^Sig(Ign|Cgt):' /proc/"$1"/status | sed 's/.\(........\)$/_\1/'
	grep -c 'r-xp 00000000 00:00 0' /proc/"$1"/maps || true
}

cat >program.lua <<'LUA'
local function hot(seconds)
	local start, sum = os.clock(), 0
	repeat
		for i = 1, 10000 do sum = sum + i % 7 end
	until os.clock() - start > seconds
	return sum
end
if arg[1] == "off" then jit.off() end
hot(tonumber(arg[2]))
print("ended")
LUA

# --- busy ---------------------------------------------------------------------------

start "$LUAJIT" program.lua on 30
sleep 0.5
if ! attach -d 0.5 -p "$pid"; then
	case $(cat log) in
	*ptrace_scope*|*CAP_SYS_PTRACE*|*"not permitted"*)
		skip "$(cat log)" ;;
	esac
	fail "the first attach"
fi
grep -q "process $pid: 1 thread, " log || fail "no word of the start"
check dump.bin 'hot program.lua:1' 5
describe "$pid" >before
for _ in 1 2 3; do
	attach -d 1 -p "$pid" || fail "attached once more"
	check dump.bin 'hot program.lua:1' 5
done
describe "$pid" >after
cmp -s before after || { diff before after || true; fail "it was changed"; }
kill -0 "$pid" || fail "the program has ended"

# --- ends -----------------------------------------------------------------------------

attach_in_background()
{
	rm -f dump.bin
	"$sysprof" record -i 1 -o dump.bin -p "$pid" >log 2>&1 &
	recorder=$!
	pids="$pids $recorder"
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		grep -q 'Ctrl-C ends it' log && break
		sleep 0.25
	done
	sleep 1
}

for number in INT TERM HUP; do
	attach_in_background
	kill -$number $recorder
	wait $recorder || fail "status after SIG$number"
	check dump.bin 'hot program.lua:1' 5
done
# A recorder that is killed ends the profile, too.
attach_in_background
kill -9 $recorder
wait $recorder 2>/dev/null || true
for _ in 1 2 3 4 5 6 7 8; do
	[ "$(grep Threads /proc/"$pid"/status)" = "Threads:	1" ] && break
	sleep 0.25
done
check dump.bin 'hot program.lua:1' 5
# The program ends by a signal.
attach_in_background
kill "$pid"
wait $recorder || fail "status after the end of the program"
finish 143
check dump.bin 'hot program.lua:1' 5
# By itself.
start "$LUAJIT" program.lua off 4
sleep 0.3
attach -p "$pid" || fail "status after the end of the program"
finish 0
[ "$(cat out)" = ended ] || fail "it printed $(cat out)"
check dump.bin 'hot program.lua:1' 5
# It is killed.
start "$LUAJIT" program.lua on 30
sleep 0.3
attach_in_background
kill -9 "$pid"
wait $recorder || fail "status after SIGKILL"
grep -q 'its last half second is missing' log || fail "nothing said of SIGKILL"
"$parser" --partial dump.bin 2>log |
	grep -q 'hot program.lua:1' || fail "the dump cannot be read"

# It executes another program, which no signal of ours ends.
cat >exec.lua <<'LUA'
local ffi = require "ffi"
ffi.cdef "int execlp(const char *, const char *, ...);"
local function hot() local s = 0 for i = 1, 1e6 do s = s + i % 7 end end
repeat hot() until io.open("go")
ffi.C.execlp("sleep", "sleep", "3", ffi.cast("char *", nil))
LUA
start "$LUAJIT" exec.lua
sleep 0.3
attach_in_background
touch go
wait $recorder || fail "status after exec"
grep -q 'has executed another program' log || fail "nothing said of exec"
finish 0

# --- blocked ------------------------------------------------------------------------------

# blocked CALL RESULT: what it prints if nothing interrupts it. The second attach
# may come too late.
blocked()
{
	start "$host" "$1"
	sleep 0.5
	attach -d 0.2 -p "$pid" || fail "blocked in $1"
	check dump.bin . 0
	sleep 0.5
	attach -d 0.2 -p "$pid" ||
		grep -q -e 'there is none' -e 'has ended' log ||
		fail "blocked in $1 once more"
	finish 0
	case $(cat out) in
	"$2 in time") ;;
	"$2 late") may_be_late "$1" || fail "$1 was late" ;;
	*) fail "$1 returned $(cat out)" ;;
	esac
}

# Those whose timeout the kernel does not know any more when they were stopped; and
# that of epoll_wait(2) where it does not tell since when a thread is blocked.
may_be_late()
{
	case $1 in
	sigtimedwait | recv) true ;;
	epoll*) [ ! -r /proc/self/sched ] ;;
	*) false ;;
	esac
}

blocked nanosleep "0 -"
blocked clock_nanosleep "0 -"
blocked poll "0 -"
blocked ppoll "0 -"
blocked select "0 -"
blocked epoll_wait "0 -"
blocked epoll_pwait "0 -"
blocked read "1 -"
blocked futex "-1 Connection timed out"
blocked sigtimedwait "-1 Resource temporarily unavailable"
blocked recv "-1 Resource temporarily unavailable"

# --- in the middle of anything ----------------------------------------------------------------

for mode in memory libraries threads; do
	rm -f stop
	start "$host" $mode
	sleep 0.5
	describe "$pid" | grep -v -e Threads -e '^[0-9]' >before
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
		attach -d 0.1 -p "$pid" || fail "attached to $mode"
	done
	attach -d 3 -p "$pid" || fail "attached to $mode"
	check dump.bin 'hot' 5
	describe "$pid" | grep -v -e Threads -e '^[0-9]' >after
	cmp -s before after || { diff before after || true; fail "$mode changed"; }
	touch stop
	finish 0
	[ "$(cat out)" = ok ] || fail "$mode printed $(cat out)"
done
"$parser" --group=thread dump.bin 2>parser.err |
	grep 'hot' | cut -d';' -f1 | sort -u >threads
[ "$(wc -l <threads)" = 4 ] || fail "samples on $(wc -l <threads) threads, not 4"

rm -f stop
start "$host" vfork
sleep 0.3
attach -d 5 -p "$pid" || fail "one of two threads is in vfork(2)"
check dump.bin hot 5
touch stop
finish 0
[ "$(cat out)" = ok ] || fail "a thread in vfork(2): $(cat out)"

# --- refused --------------------------------------------------------------------------------------

# refused WHY ARGUMENT...
refused()
{
	why=$1
	shift
	status=0
	attach "$@" || status=$?
	[ $status = 1 ] || fail "status $status, not 1: $*"
	grep -q "$why" log || fail "not refused by '$why'"
	[ ! -e dump.bin ] || fail "a dump of nothing was left"
}

rm -f dump.bin stop
start sleep 30
refused 'has no LuaJIT' -d 1 -p "$pid"
kill "$pid"
refused 'there is none' -d 1 -p 4194303
cat >pause.s <<'ASM'
	.globl _start
_start:	movl $29, %eax
	int $0x80
	jmp _start
ASM
if as --32 pause.s -o pause.o 2>/dev/null &&
	ld -m elf_i386 pause.o -o pause-32 2>/dev/null; then
	start ./pause-32
	# Some kernels run no such programs.
	sleep 0.3
	[ ! -d /proc/"$pid" ] || refused 'is a 32-bit program' -d 1 -p "$pid"
	kill "$pid" 2>/dev/null || true
fi
if as --64 pause.s -o pause.o 2>/dev/null &&
	ld pause.o -o pause-static 2>/dev/null; then
	start ./pause-static
	sleep 0.3
	[ ! -d /proc/"$pid" ] || refused 'is linked statically' -d 1 -p "$pid"
	kill "$pid" 2>/dev/null || true
fi
"$LUAJIT" -e 'local ffi = require "ffi"
ffi.cdef "int fork(void); void _exit(int); int sleep(int);"
local child = ffi.C.fork()
if child == 0 then ffi.C._exit(0) end
print(child) io.stdout:flush() ffi.C.sleep(30)' >zombie &
pids="$pids $!"
sleep 0.5
refused 'has ended; its parent' -d 1 -p "$(cat zombie)"
start "$LUAJIT" program.lua on 30
sleep 0.3
kill -STOP "$pid"
sleep 0.1
refused 'is stopped: let it go on' -d 1 -p "$pid"
kill -CONT "$pid"
if [ "$(id -u)" = 0 ] && setpriv --reuid=65534 true 2>/dev/null; then
	status=0
	mkdir -m 777 foreign
	chmod 755 .
	if setpriv --reuid=65534 test -x "${sysprof%/*}/.libs/luajit-sysprof" ||
		setpriv --reuid=65534 test -x "$sysprof"; then
		setpriv --reuid=65534 --clear-groups "$sysprof" \
			record -d 1 -o foreign/dump.bin -p "$pid" >log 2>&1 ||
			status=$?
		if [ $status != 126 ]; then
			[ $status = 1 ] || fail "a foreign process: $status"
			grep -q 'is one of the user root' log ||
				fail "not refused as foreign"
		fi
	fi
fi
# Its ids are others in a namespace of its own.
if unshare -pf --mount-proc true 2>/dev/null; then
	unshare -pf --kill-child --mount-proc "$LUAJIT" program.lua on 100 &
	namespace=$!
	pids="$pids $namespace"
	sleep 0.5
	inner=$(cat /proc/$namespace/task/$namespace/children)
	attach -d 2 --rotate=1s -p "${inner% }" || fail "another namespace"
	for dump in dump.bin."${inner% }".*; do
		check "$dump" . 0
	done
	"$parser" "$dump" 2>parser.err |
		grep -q 'hot program.lua:1' || fail "no samples in a namespace"
	kill $namespace
	rm dump.bin.*
fi
refused 'mode must be' -m X -d 1 -p "$pid"
attach_in_background
status=0
"$sysprof" record -o second.bin -d 1 -p "$pid" >log 2>&1 || status=$?
[ $status = 1 ] || fail "a second recorder was not refused"
grep -q 'a profile runs in it already' log || fail "a second recorder"
kill $recorder
wait $recorder || fail "the first recorder"
check dump.bin 'hot program.lua:1' 5
rm dump.bin
kill "$pid"
"$host" traced >traced.pid &
tracer=$!
pids="$pids $tracer"
sleep 0.5
refused "is traced by process $tracer" -d 1 -p "$(cat traced.pid)"
rm -f stop dump.bin
start "$host" filtered
sleep 0.3
refused 'has a seccomp filter' -d 1 -p "$pid"
attach --force -d 1 -p "$pid" || fail "--force"
check dump.bin hot 5
touch stop
finish 0
[ "$(cat out)" = ok ] || fail "under a filter it printed $(cat out)"
rm -f stop dump.bin
start "$host" blocking
sleep 0.3
refused 'blocked on all threads' -d 1 -p "$pid"
touch stop
finish 0
for arguments in "-p 1 true" "-p x" "-p 0" "-d 1 true" "-d x -p 1" "--force true"; do
	status=0
	# shellcheck disable=SC2086
	attach $arguments || status=$?
	[ $status = 2 ] || fail "status $status of $arguments"
done
