#!/bin/sh
# SPDX-License-Identifier: MIT
# Several VMs and threads in one process: a session for each VM, one for all of
# them, VMs that move between threads, come, go and call each other.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit
host=$top_builddir/tests/end-to-end/threads_host

# count DUMP REGEX [OPTION...]: samples whose stack has such a frame.
count()
{
	dump=$1 frame=$2
	shift 2
	"$parser" --include="$frame" "$@" "$dump" 2>parser.err | sum_samples
}

between()
{
	if [ "$2" -lt "$3" ] || [ "$2" -gt "$4" ]; then
		fail "$1: $2 samples, not $3 to $4"
	fi
}

# --- a session for each of 32 VMs ---------------------------------------------

"$host" each 32 || fail "each"
i=0
while [ $i -lt 32 ]; do
	between own$i "$(count own$i.bin "work_own$i.lua:8")" 100 260
	between "others in own$i" \
		"$(count own$i.bin 'work_' --exclude="work_own${i}.lua")" 0 0
	i=$((i + 1))
done

# --- one for the process --------------------------------------------------------

samples=$("$host" process 4) || fail "process"
[ "$(count process.bin .)" = "$samples" ] ||
	fail "process.bin has $(count process.bin .) samples, not $samples"
for i in 0 1 2 3; do
	between early$i "$(count process.bin "work_early$i.lua:8")" 100 480
	between late$i "$(count process.bin "work_late$i.lua:8")" 250 480
done
between main "$(count process.bin 'work_main.lua:8')" 120 240
between moving "$(count process.bin 'work_moving.lua:8')" 350 720

# Each VM has one number, and each thread its own VM, but for the one that moved.
"$parser" --group=vm process.bin >by-vm
"$parser" --group=thread process.bin >by-thread
for name in main moving early0 early3 late0 late3; do
	[ "$(grep "work_$name.lua" by-vm | cut -d';' -f1 | sort -u | wc -l)" = 1 ] ||
		fail "$name has several VM numbers"
done
[ "$(grep 'work_' by-vm | cut -d';' -f1 | sort -u | wc -l)" = 10 ] ||
	fail "not 10 VMs"
[ "$(grep 'work_moving.lua' by-thread | cut -d';' -f1 | sort -u | wc -l)" = 2 ] ||
	fail "the VM that moved was not on 2 threads"
if grep 'work_main.lua' by-vm | grep 'work_early'; then
	fail "frames of two VMs in one stack"
fi

# --- threads that come and go -----------------------------------------------------

samples=$("$host" churn) || fail "churn"
[ "$(count churn.bin .)" = "$samples" ] || fail "churn.bin: not $samples samples"
[ "$(count churn.bin 'work_churn[0-3].lua:8')" -ge 50 ] ||
	fail "churn.bin has only $(count churn.bin work_churn) samples of threads"

# --- threads with stacks of 64 KiB ---------------------------------------------------

samples=$("$host" small) || fail "small"
[ "$(count small.bin .)" = "$samples" ] || fail "small.bin: not $samples samples"
[ "$(count small.bin 'work_small[0-3].lua:8')" -ge 1000 ] ||
	fail "small.bin has only $(count small.bin work_small) samples of threads"

# --- a thread without a VM -----------------------------------------------------------

# Its state is its own, and not that of the VM which runs elsewhere.
"$host" native || fail "native"
[ "$(count native.bin burn_natively)" -ge 50 ] ||
	fail "native.bin has only $(count native.bin burn_natively) native samples"
[ "$(count native.bin 'work_main.lua:8' --state=TRACE)" -ge 50 ] ||
	fail "the VM is not in compiled code"
"$parser" --include=burn_natively --group=state native.bin >by-state
if grep -v '^\[state CFUNC];' by-state; then
	fail "native.bin: a thread without a VM has the state of one"
fi

# --- VMs in each other -------------------------------------------------------------

"$host" nested || fail "nested"
for dump in outer inner; do
	between $dump "$(count $dump.bin 'work_inner.lua:8')" 200 360
	"$parser" $dump.bin | grep 'work_inner.lua:8' |
		grep -v '^_start;.*;main;.* enter_outer.lua:1;call_inner;.* enter_inner.lua:1;.* work_inner.lua:13;.* work_inner.lua:8' &&
		fail "$dump.bin: the outer VM is missing in a stack"
done
exit 0
