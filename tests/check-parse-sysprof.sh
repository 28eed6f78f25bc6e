#!/bin/sh
# SPDX-License-Identifier: MIT
# luajit-parse-sysprof as a command: options, input and output, exit codes,
# messages. The dumps are made by tests/write_small_dump.
. "${top_srcdir:?run by make check}/tests/common.sh"
command=$parser
. "$top_srcdir/tests/commands.sh"
make_dump=$top_builddir/tests/write_small_dump

"$make_dump" small >small.bin
"$make_dump" folded >folded.txt
"$make_dump" lines >lines.txt

# --- what it prints -----------------------------------------------------------

expect 0 small.bin
same out folded.txt
says err 'lost 5 of 12 samples:'
says err 'ring full: 3'
says err 'nested signal: 2'
says err "1 samples have a stack that is not whole"
expect 0 --format=folded small.bin
same out folded.txt
expect 0 small.bin --lines
same out lines.txt
expect 0 -o written small.bin
same written folded.txt
[ ! -s out ] || fail "-o also wrote to standard output"
expect 0 small.bin --output=written --lines
same written lines.txt
expect 0 --compat small.bin
grep -q '^main:0x400000;lua_pcall:0x401000;	2$' out || fail "no compat line"
[ ! -s err ] || fail "compat says something"

for format in folded top html svg compat; do
	expect 0 --format="$format" small.bin
	[ -s out ] || fail "$format prints nothing"
	expect 0 --help
	says out "$format"
done
if command -v xmllint >/dev/null; then
	expect 0 --format=svg small.bin
	xmllint --noout out || fail "the SVG is no XML"
	"$make_dump" hostile >hostile.bin
	expect 0 --format=svg hostile.bin
	xmllint --noout out || fail "a name breaks the SVG"
fi

# From a pipe, which cannot seek.
# shellcheck disable=SC2002
cat small.bin | "$command" - >out 2>err || fail "pipe"
same out folded.txt

# --- what it refuses ----------------------------------------------------------

expect 0 --version
says out "luajit-parse-sysprof ("
expect 0 --help
says out "Usage: luajit-parse-sysprof"
expect 2
says err "expected the FILE of a dump"
expect 1 small.bin other.bin
says err "cannot open other.bin"
expect 2 --format=pdf small.bin
says err "got 'pdf', expected one of folded, top, html, svg, "
expect 2 --frobnicate small.bin
says err "frobnicate"
expect 2 --compat --lines small.bin
says err "--lines"
expect 1 missing.bin
says err "cannot open missing.bin: No such file or directory"
expect 1 .
says err "Is a directory"
expect 1 -o no/such/folder small.bin
says err "cannot write no/such/folder: No such file or directory"
if [ -c /dev/full ]; then
	expect 1 -o /dev/full small.bin
	says err "cannot write /dev/full: No space left on device"
fi
: >empty.bin
expect 1 empty.bin
says err "empty.bin: at offset 0 (0x0): expected the start of the symbol table"
[ ! -s out ] || fail "prints something of nothing"

# --- a dump that was cut ------------------------------------------------------

size=$(wc -c <small.bin)
head -c "$((size - 1))" small.bin >cut.bin
expect 1 cut.bin
says err "cut.bin: at offset $((size - 1)) "
says err "expected the next record, or the end record, but got: the input ends"
says err "7 samples can be read up to there; --partial prints them"
says err "lost 5 of 12 samples:"
[ ! -s out ] || fail "prints a damaged dump without --partial"
expect 0 --partial cut.bin
same out folded.txt
says err "the input ends"

{ cat small.bin; echo more; } >long.bin
expect 0 long.bin
same out folded.txt
says err "long.bin: ignored what follows the end record"
