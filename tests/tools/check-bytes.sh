#!/bin/bash
# SPDX-License-Identifier: MIT
# luajit-parse-sysprof and any bytes: with an address space of 256 MB it never
# ends but by an answer. Inputs that are no files, or none of ours; dumps that
# promise more than they have; stacks and names without end.
set -o pipefail
. "${top_srcdir:?run by make check}/tests/common.sh"
make_dump=$top_builddir/tests/write_small_dump
formats=(folded top html svg speedscope firefox callgrind json compat)
[ -z "${SANITIZERS:-}" ] ||
	skip "sanitizers need more address space than 256 MB"
evidence=err

# limited ARGUMENT...: exit code in $code. 124 is a time-out, over 128 a crash.
limited()
{
	code=0
	(ulimit -v 262144; exec timeout 60 "$parser" "$@") >out 2>err </dev/null ||
		code=$?
}

expect()
{
	wanted=$1
	shift
	limited "$@"
	[ "$code" = "$wanted" ] || fail "exit code $code, expected $wanted: $*"
}

says()
{
	grep -qF -- "$1" err || fail "expected on standard error: $1"
}

# --- inputs that are no dumps -------------------------------------------------

mkdir directory
expect 1 directory
says "directory: at offset 0 (0x0): expected the start of the symbol table"
says "Is a directory"
: >empty
expect 1 empty
says "empty: at offset 0 (0x0)"
expect 1 /dev/null
mkfifo pipe
: >pipe &
expect 1 pipe
says "pipe: at offset 0 (0x0)"
"$make_dump" small >small.bin
size=$(wc -c <small.bin)
head -c 200 small.bin >pipe &
expect 1 pipe
says "pipe: at offset "
says "the input ends"
expect 1 "$parser"
says "not a sysprof dump"
head -c 100000 /dev/zero >zeros
expect 1 zeros
printf 'ljs\003\0\0\0\200ljm\003\0\0\0\200' >memory
expect 1 memory
says "memory profile"

# --- every output of every part -----------------------------------------------

at=0
while [ $at -lt "$size" ]; do
	head -c $at small.bin >cut.bin
	format=${formats[at / 37 % ${#formats[@]}]} # one after the other
	expect 1 cut.bin
	says "cut.bin: at offset "
	limited --partial --format="$format" cut.bin
	[ "$code" = 0 ] || fail "--partial of $at bytes: exit code $code"
	at=$((at + 37))
done

# --- promises -----------------------------------------------------------------

huge='\200\200\200\200\200\200\200\200\100' # 2^62
for record in '\012\005'$huge'abc' '\013\005'$huge'abc' \
	'\013\377\377\377\377\377\377\377\377\377\001'$huge'abc' \
	'\013\377\377\377\377\377\377\377\377\377\001\004\004'$huge; do
	# shellcheck disable=SC2059
	printf 'ljs\003\0\0\0\200ljp\002\0\0\0'"$record" >lie
	expect 1 lie
	says "lie: at offset"
done
# A native stack of 30 million frames.
{
	printf 'ljs\003\0\0\0\200ljp\002\0\0\0\004'
	head -c 30000000 /dev/zero | tr '\0' '\001'
} >deep
expect 1 deep
says "at most 262144 frames"
# The greatest that is read, through every output that walks stacks.
{
	printf 'ljs\003\0\0\0\200ljp\002\0\0\0\004'
	head -c 262143 /dev/zero | tr '\0' '\001'
	printf '\0\200'
} >deepest
for format in folded top callgrind speedscope; do
	expect 0 --format="$format" deepest
done

# --- much ---------------------------------------------------------------------

"$top_builddir/bench/write_large_dump" 40 10000 >large 2>/dev/null
for format in "${formats[@]}"; do
	[ "$format" = firefox ] || expect 0 --format="$format" large
done
"$make_dump" names >names.bin
for format in "${formats[@]}"; do
	expect 0 --format="$format" names.bin
	[ "$format" = compat ] || grep -q 'the_end\.lua' out ||
		fail "$format: a long name lost its end"
	[ "$format" = compat ] || [ "$(wc -c <out)" -lt 200000 ] ||
		fail "$format: a long name is not shortened"
done

corpus=${LUAJIT_SYSPROF_CORPUS:-/nonexistent}
for dump in "$corpus"/malformed/*.bin; do
	[ -e "$dump" ] || break
	limited --partial "$dump"
	[ "$code" -le 1 ] || fail "$dump: exit code $code"
done
