#!/bin/sh
# SPDX-License-Identifier: MIT
# Twenty programs at 10 kHz: every function stands on one that the VM itself saw
# call it (with the JIT off, by a hook), less than 0.2 % of the samples are
# incomplete, and the results are those without the profiler.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit

programs=$top_srcdir/tests/programs
run=$programs/run.lua
seconds=0.7
jits=-jon
if [ "${LONG:-no}" != no ]; then
	seconds=20
	jits="-joff -jon"
fi

# Profile of one program: check PROGRAM JIT.
check()
{
	"$LUAJIT" "$2" "$run" profile "$1" $seconds >profiled.txt || {
		complain "$1 $2: died"
		return
	}
	cmp -s plain.txt profiled.txt ||
		complain "$1 $2: its result is another when profiled"
	"$parser" --guest-only sysprof.bin |
		"$LUAJIT" "$run" judge pairs.txt >judged.txt || {
		cat judged.txt
		complain "$1 $2: illegal pairs"
	}
	tail -n 1 report.txt >counts.txt
	read -r samples incomplete <counts.txt
	echo "$1 $2: $samples samples, $incomplete incomplete," \
		"$(tail -n 1 judged.txt)"
	[ "$samples" -ge 100 ] || complain "$1 $2: hardly any samples"
	# A single one is no share.
	if [ "$incomplete" -gt 1 ] &&
		[ $((incomplete * 1000)) -ge $((samples * 2)) ]; then
		cat report.txt
		complain "$1 $2: 0.2 % or more are incomplete"
	fi
}

count=0
for file in "$programs"/*.lua; do
	program=$(basename "$file" .lua)
	[ "$program" != run ] || continue
	count=$((count + 1))
	"$LUAJIT" "$run" plain "$program" 0.05 >plain.txt
	"$LUAJIT" -joff "$run" pairs "$program" >pairs.txt
	for jit in $jits; do
		check "$program" "$jit"
	done
done
[ $count -eq 20 ] || complain "$programs: $count programs, not 20"
