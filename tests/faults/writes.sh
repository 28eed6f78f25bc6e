#!/bin/sh
# SPDX-License-Identifier: MIT
# Dumps that the disk does not take, or takes slowly: what is lost is counted, later
# dumps come, errors say what helps, and children inherit nothing.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit
program=$top_srcdir/tests/faults/writes.lua
preload=$top_builddir/tests/faults/.libs/fail_nth.so

run()
{
	LD_PRELOAD=$preload timeout 300 "$LUAJIT" "$program" "$1" >"$1.out" ||
		fail "$1: see above"
}

# Sums over dumps, interrupted ones included: samples, and those not written.
sum_up()
{
	samples=0 unwritten=0
	for dump; do
		"$parser" --partial "$dump" >folded 2>told || fail "$dump: $(cat told)"
		samples=$((samples + $(sum_samples <folded)))
		unwritten=$((unwritten + $(sed -n \
			's/.*  dump not written: //p' told | head -n 1 | grep . ||
			echo 0)))
	done
}

run again
read -r recorded dumps lost <again.out
set -- again.bin.*
[ $# = "$dumps" ] || fail "$# dumps are left, report() says $dumps"
sum_up "$@"
[ "$unwritten" = "$lost" ] || fail "dumps tell of $unwritten, report() of $lost"
[ $((samples + lost)) = "$recorded" ] ||
	fail "$samples samples and $lost lost, but $recorded recorded"
for dump; do
	[ -s "$dump" ] || fail "$dump is empty"
done
last=$(printf '%s\n' "$@" | tail -n 1)
"$parser" "$last" >folded || fail "$last: see above"
grep -q 'work [^;]*writes.lua' folded || fail "$last lacks names"

run full
read -r recorded dumps lost <full.out
set -- full.bin.*
[ $# = "$dumps" ] || fail "$# dumps are left, report() says $dumps"
sum_up "$@"
[ $((samples + lost)) = "$recorded" ] ||
	fail "$samples samples and $lost lost, but $recorded recorded"

run quota
run fork
