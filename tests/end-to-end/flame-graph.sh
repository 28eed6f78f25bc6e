#!/bin/sh
# SPDX-License-Identifier: MIT
# The flame graphs of luajit-parse-sysprof in a real browser. With KEEP=DIR the
# files and their pictures are left in that directory.
. "${top_srcdir:?run by make check}/tests/common.sh"
need python3
need chromium
files=${KEEP:-$work}

make_dump()
{
	"$top_builddir/tests/write_small_dump" "$1" >"$files/$1.bin"
}

# make_graphs NAME ARGUMENT...
make_graphs()
{
	name=$1
	shift
	for format in html svg; do
		"$parser" --format=$format -o "$files/$name.$format" "$@" \
			2>/dev/null
	done
}

make_dump small
make_dump hostile
"$top_builddir/bench/write_large_dump" 4 10000 >"$files/large.bin" 2>/dev/null
make_graphs small "$files/small.bin"
make_graphs hostile "$files/hostile.bin"
make_graphs large "$files/large.bin"
make_graphs comparison --diff "$files/small.bin" "$files/hostile.bin"
make_graphs empty "$files/small.bin" --include nothing-like-it
python3 "$top_srcdir/tests/end-to-end/flame-graph.py" "$files/small" \
	"$files/hostile" "$files/large" "$files/comparison" "$files/empty"
