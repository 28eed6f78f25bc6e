#!/bin/sh
# SPDX-License-Identifier: MIT
# luajit-parse-memprof --compat against what the parser that came with the
# format printed: real dumps in $LUAJIT_SYSPROF_CORPUS/memprof, hand-made ones
# in …/malformed. The totals of the default tables must be those of the dumps.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_corpus
parser=$top_builddir/tools/luajit-parse-memprof
export LC_ALL=C

# same EXPECTED ARGUMENT...: the same lines, in any order.
same()
{
	sort "$1" >"$work/expected"
	shift
	"$parser" --compat "$@" >"$work/got" 2>"$work/err" ||
		complain "$*: $(cat "$work/err")"
	sort "$work/got" | cmp -s - "$work/expected" || complain "$*: lines differ"
	[ ! -s "$work/err" ] || complain "$*: $(cat "$work/err")"
}

# Number of a key of a summary, added up over the sources of an event.
events_of_summary()
{
	sed -n "s/^ *\"$2\/[A-Z]*\": \([0-9]*\),*$/\1/p" "$1" |
		awk '{ sum += $1 } END { print sum + 0 }'
}

# The same from the default tables.
events_of_tables()
{
	awk -v title="$1" '/^[A-Z]/ { on = $0 == title }
		on && / in all$/ { print $1 }' "$work/tables"
}

check_totals()
{
	"$parser" "$1.bin" >"$work/tables"
	for pair in alloc:ALLOCATIONS realloc:REALLOCATIONS free:DEALLOCATIONS
	do
		wanted=$(events_of_summary "$1.summary.json" "${pair%:*}")
		got=$(events_of_tables "${pair#*:}")
		[ "$got" = "$wanted" ] ||
			complain "$1: $got events of ${pair%:*}, not $wanted"
	done
	! grep -q ' -[0-9.]*[BKMG]' "$work/tables" || complain "$1: negative size"
}

compared=0
for dump in "$LUAJIT_SYSPROF_CORPUS"/memprof/*.bin; do
	[ -e "$dump" ] || break
	name=${dump%.bin}
	same "$name.txt" "$dump"
	same "$name.leak.txt" --leak-only "$dump"
	same "$name.human.txt" "$dump" --human-readable
	check_totals "$name"
	compared=$((compared + 1))
done
[ "$compared" -gt 0 ] || complain "no dump in $LUAJIT_SYSPROF_CORPUS/memprof"

malformed=0
for dump in "$LUAJIT_SYSPROF_CORPUS"/malformed/m-*.bin; do
	[ -e "$dump" ] || break
	text=${dump%.bin}.txt
	wanted=$(sed -n '1s/exit: //p' "$text")
	code=0
	"$parser" --compat "$dump" >"$work/got" 2>"$work/err" || code=$?
	[ "$code" = "$wanted" ] || complain "$dump: exit code $code, not $wanted"
	sed -n '/^--- stdout$/,/^--- stderr$/p' "$text" | sed '1d;$d' |
		sort >"$work/expected"
	sort "$work/got" | cmp -s - "$work/expected" || complain "$dump: lines differ"
	[ "$code" = 0 ] ||
		grep -q 'bin: at offset [0-9]* (0x[0-9a-f]*): expected' \
			"$work/err" || complain "$dump: $(cat "$work/err")"
	"$parser" --partial "$dump" >"$work/got" 2>"$work/err" ||
		complain "$dump: --partial: $(cat "$work/err")"
	malformed=$((malformed + 1))
done
[ "$malformed" -gt 0 ] || complain "no dump in $LUAJIT_SYSPROF_CORPUS/malformed"

echo "compared $compared real and $malformed hand-made dumps"
