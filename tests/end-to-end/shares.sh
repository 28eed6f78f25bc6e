#!/bin/sh
# SPDX-License-Identifier: MIT
# Programs that know where their time goes (shares.lua) are shown so: each
# function, line and VM state within one point, JIT off and on.
# $LUAJIT may be several words: a loader and a LuaJIT of another system.
# shellcheck disable=SC2086
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit

sample_count=20000
programs="functions rare lines traces"
[ "${LONG:-no}" = no ] || programs="$programs recursion coroutines collector"
: "${SHARES_PROGRAMS:=$programs}"
script=$top_srcdir/tests/end-to-end/shares.lua

fold()
{
	"$parser" "$@" sysprof.bin
}

# Percent of the samples whose stack has the text: share_with TEXT, from stdin.
share_with()
{
	awk -v text="$1" '
		{ all += $NF }
		index(";" $0 ";", text) { found += $NF }
		END { print 100 * found / all }'
}

# share_of KIND NAME, as shares.lua says it.
share_of()
{
	case $1 in
	function) fold --guest-only | share_with " $2:1" ;;
	line) fold --guest-only --lines=all |
		sed 's/ [0-9]*$/;&/' | share_with " line $2;" ;;
	state) fold --group=state | share_with ";[state $2];" ;;
	esac
}

# One program, JIT as the options say: measure PROGRAM OPTIONS... Are all shares right?
measure()
{
	program=$1
	shift
	right=yes
	$LUAJIT "$@" "$script" "$program" $sample_count >log ||
		{ cat log; fail "$program $*"; }
	got=$(awk '$1 == "samples" { print $2 }' log)
	[ "$got" -ge $sample_count ] ||
		skip "the clock of this machine gives only $got samples"
	[ "$(fold | sum_samples)" = "$got" ] ||
		fail "the dump of $program $* has not $got samples"
	grep ^expect log >expected.txt
	while read -r _ kind name percent; do
		share=$(share_of "$kind" "$name")
		echo "$program $*: $kind $name $percent % -> $share %"
		awk -v a="$percent" -v b="$share" \
			'BEGIN { exit !(a - b <= 1 && b - a <= 1) }' || {
			echo "more than one point"
			right=no
		}
	done <expected.txt
	[ $right = yes ]
}

# One point is three times the deviation of 30 % of 20,000 samples: by chance alone one
# share in some hundreds is off, but not twice.
check()
{
	measure "$@" || measure "$@" || complain "$*: more than one point, twice"
}

for program in $SHARES_PROGRAMS; do
	check "$program" -joff
	check "$program" -jon
done
