#!/bin/sh
# SPDX-License-Identifier: MIT
# luajit-parse-sysprof --compat against what the parser that came with the
# format printed: real dumps in $LUAJIT_SYSPROF_CORPUS/sysprof, hand-made ones
# in …/malformed. The totals of all formats must be those of the profiler.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_corpus
export LC_ALL=C
compared=0

# --- totals -------------------------------------------------------------------

# "STATE COUNT" lines of the object "vmstate" or "vmstates" of a JSON file,
# without zeros.
states_of_json()
{
	tr -d '\n' <"$1" | sed 's/.*"vmstates*": *{\([^}]*\)}.*/\1/' |
		tr ',' '\n' | tr -d '" ' | sed 's/:/ /' |
		awk '$2 > 0' | sort
}

# The same from the top output.
states_of_top()
{
	awk '/VM state$/ { on = 1; next }
		/in all$/ { exit }
		on { print $3, $1 }' "$1" | sort
}

# Sum of the counts that end the lines.
total_of()
{
	awk '{ sum += $NF } END { print sum + 0 }' "$1"
}

check_totals()
{
	"$parser" --format=top "$1.bin" >"$work/top" 2>/dev/null
	states_of_top "$work/top" >"$work/states"
	"$parser" "$1.bin" >"$work/folded" 2>/dev/null
	total=$(awk '{ sum += $2 } END { print sum + 0 }' "$work/states")
	[ "$(total_of "$work/folded")" = "$total" ] ||
		complain "$1: folded has $(total_of "$work/folded") samples, not $total"
	for json in "$1.report.json" "$1.summary.json"; do
		[ -e "$json" ] || continue
		states_of_json "$json" >"$work/expected"
		diff "$work/expected" "$work/states" >"$work/difference" ||
			complain "$json: $(cat "$work/difference")"
	done
}

# Frames that a folded line may never have.
check_folded()
{
	if grep -nE '^;|;;|; [0-9]+$|[^0-9]$|\(' "$work/folded"; then
		complain "$1: bad folded lines"
	fi
}

# --- real dumps ---------------------------------------------------------------

for dump in "$LUAJIT_SYSPROF_CORPUS"/sysprof/*.bin; do
	[ -e "$dump" ] || break
	name=${dump%.bin}
	"$parser" --compat "$dump" >"$work/got" 2>"$work/err" ||
		complain "$name: $(cat "$work/err")"
	sort "$work/got" >"$work/sorted"
	sort "$name.txt" | cmp -s - "$work/sorted" ||
		complain "$name: compat lines differ"
	[ ! -s "$work/err" ] || complain "$name: $(cat "$work/err")"
	check_totals "$name"
	check_folded "$name"
	compared=$((compared + 1))
done
[ "$compared" -gt 0 ] || complain "no dump in $LUAJIT_SYSPROF_CORPUS/sysprof"

# A plain script: its Lua functions must be there, where the old parser shows
# none, below the C function that runs the script.
recursion=$LUAJIT_SYSPROF_CORPUS/sysprof/cli-C-recursion.bin
"$parser" "$recursion" >"$work/folded" 2>/dev/null
grep -q 'pmain;.*main drive\.lua:0;function \./recursion\.lua:' "$work/folded" ||
	complain "$recursion: no Lua functions"
if grep -q 'drive\.lua' "${recursion%.bin}.txt"; then
	complain "$recursion: the old parser shows Lua functions"
fi

# --- hand-made dumps ----------------------------------------------------------

# Where ours differs on purpose:
#   trace0       a trace sample may have trace 0, "not known": read
#   ver1         streams of version 1 are read
#   symver2      so are symbol tables of version 2
#   uleb-11bytes a number of more than 64 bits is damage: the old parser wraps
expected_code()
{
	case $1 in
	s-trace0 | s-ver1 | s-symver2) echo 0 ;;
	s-uleb-11bytes) echo 1 ;;
	*) sed -n '1s/exit: //p' "$LUAJIT_SYSPROF_CORPUS/malformed/$1.txt" ;;
	esac
}

check_malformed()
{
	wanted=$(expected_code "$1")
	code=0
	"$parser" --compat "$LUAJIT_SYSPROF_CORPUS/malformed/$1.bin" >"$work/got" \
		2>"$work/err" || code=$?
	[ "$code" = "$wanted" ] ||
		complain "$1: exit code $code, expected $wanted: $(cat "$work/err")"
	if [ "$wanted" = 1 ]; then
		grep -q "$1.bin: at offset [0-9]* (0x[0-9a-f]*): expected" \
			"$work/err" || complain "$1: $(cat "$work/err")"
		return
	fi
	case $1 in s-trace0 | s-ver1 | s-symver2) return ;; esac
	sed -n '/^--- stdout$/,/^--- stderr$/p' "$LUAJIT_SYSPROF_CORPUS/malformed/$1.txt" |
		sed '1d;$d' | sort >"$work/expected"
	sort "$work/got" | cmp -s - "$work/expected" ||
		complain "$1: compat lines differ"
}

malformed=0
for dump in "$LUAJIT_SYSPROF_CORPUS"/malformed/s-*.bin; do
	[ -e "$dump" ] || break
	name=${dump##*/}
	check_malformed "${name%.bin}"
	malformed=$((malformed + 1))
done
[ "$malformed" -gt 0 ] || complain "no dump in $LUAJIT_SYSPROF_CORPUS/malformed"

# Memory profiles are told from damage.
for dump in "$LUAJIT_SYSPROF_CORPUS"/memprof/*.bin; do
	[ -e "$dump" ] || break
	code=0
	"$parser" "$dump" >"$work/got" 2>"$work/err" || code=$?
	[ "$code" = 1 ] || complain "$dump: exit code $code"
	grep -q 'this is a memory profile' "$work/err" ||
		complain "$dump: $(cat "$work/err")"
	break
done

echo "compared $compared real and $malformed hand-made dumps"
