#!/bin/sh
# SPDX-License-Identifier: MIT
# luajit-parse-memprof as a command: options, input and output, exit codes,
# messages, and what it needs of memory. The dumps are made by
# tests/write_memory_dump.
. "${top_srcdir:?run by make check}/tests/common.sh"
command=$top_builddir/tools/luajit-parse-memprof
. "$top_srcdir/tests/commands.sh"
make_dump=$top_builddir/tests/write_memory_dump

"$make_dump" small >small.bin

# --- what it prints -----------------------------------------------------------

expect 0 small.bin
says out "           340B            4            2  make a.lua:3 line 5"
says out "            3           240B             0B  make a.lua:3 line 5"
says out "            1           300B           100B  function a.lua:10 line 12"
says out "of make a.lua:3 line 5"
says out "FROM BEFORE THE START"
says out "           510B  of blocks that are in no balance"
says err "lost 3 of 12 events, so balances may be wrong:"
says err "the writer thread did not keep up: 3"
expect 0 small.bin --leak-only
says out "           384B"
silent out ALLOCATIONS
expect 0 --compat --leak-only small.bin --human-readable
says out "@a.lua:5 holds 340B: 4 allocs, 2 frees"
silent out ALLOCATIONS
expect 0 --compat small.bin
says out "@a.lua:12: 1 events	+300B	-100B"
says out "	Overrides:"
expect 0 --traces small.bin
says out "make a.lua:3 line 5, TRACE_7"
expect 0 --format=folded small.bin
says out "make a.lua:3 line 5 240"
expect 0 --format=folded --weight=count small.bin
says out "make a.lua:3 line 5 3"
expect 0 --format=folded --leak-only small.bin
says out "make a.lua:3 line 5 340"
for format in html svg; do
	expect 0 --format=$format --weight=held small.bin
	says out "make a.lua:3"
done
expect 0 -o written small.bin
"$command" small.bin 2>err >out
cmp -s out written || fail "-o writes something else"
# From a pipe, which cannot seek.
# shellcheck disable=SC2002
cat small.bin | "$command" - 2>err >out || fail "pipe"
cmp -s out written || fail "a pipe is read otherwise"

# --- what it refuses ----------------------------------------------------------

expect 0 --version
says out "luajit-parse-memprof ("
expect 0 --help
for word in --leak-only --human-readable --traces --weight --partial; do
	says out "$word"
done
expect 2
says err "expected the FILE of a dump"
expect 2 small.bin other.bin
says err "got 'small.bin' and 'other.bin'"
expect 2 --format=pdf small.bin
says err "got 'pdf', expected one of tables, compat, folded, html, svg"
expect 2 --weight=kilos small.bin
says err "got 'kilos', expected one of bytes, count, held"
expect 2 --weight=held small.bin
says err "--weight is for the formats folded"
expect 2 --compat --traces small.bin
expect 2 --frobnicate small.bin
says err "frobnicate"
expect 1 missing.bin
says err "cannot open missing.bin: No such file or directory"
expect 1 .
says err "Is a directory"
if [ -c /dev/full ]; then
	expect 1 -o /dev/full small.bin
	says err "cannot write /dev/full: No space left on device"
fi
printf 'ljs\003\0\0\0\200ljp\002\0\0\0\200' >sysprof.bin
expect 1 sysprof.bin
says err "sysprof.bin: at offset 8 (0x8): expected the start of the event stream"
says err "this is a sysprof dump, for luajit-parse-sysprof"

# --- a dump that was cut ------------------------------------------------------

size=$(wc -c <small.bin)
head -c "$((size - 1))" small.bin >cut.bin
expect 1 cut.bin
says err "cut.bin: at offset $((size - 1)) "
says err "9 events can be read up to there; what was freed later counts as held"
[ ! -s out ] || fail "prints a damaged dump without --partial"
expect 0 --partial cut.bin
cmp -s out written || fail "the whole part is not as it was"
{ cat small.bin; echo more; } >long.bin
expect 0 long.bin
says err "long.bin: ignored what follows the end record"

# --- memory -------------------------------------------------------------------

# Grows with what is alive, not with the events.
"$make_dump" large 64 >large.bin
(
	# shellcheck disable=SC3045 # dash and bash have it
	ulimit -v 60000
	"$command" --leak-only large.bin
) >out 2>err || fail "64 MiB of events need more than 60 MB"
says out "         48000B"
