#!/bin/sh
# SPDX-License-Identifier: MIT
# The flame graphs of luajit-parse-sysprof in a real browser. With KEEP=DIR the
# files and their pictures are left in that directory.
set -eu

: "${top_builddir:?run by make check}" "${top_srcdir:?}"
parse=$top_builddir/tools/luajit-parse-sysprof
for program in python3 chromium; do
	if ! command -v $program >/dev/null; then
		echo "SKIP: no $program (Debian package: $program)"
		exit 77
	fi
done
work=${KEEP:-$(mktemp -d)}
[ -n "${KEEP:-}" ] || trap 'rm -rf "$work"' EXIT

make_dump()
{
	"$top_builddir/tests/write_small_dump" "$1" >"$work/$1.bin"
}

# make_graphs NAME ARGUMENT...
make_graphs()
{
	name=$1
	shift
	for format in html svg; do
		"$parse" --format=$format -o "$work/$name.$format" "$@" \
			2>/dev/null
	done
}

make_dump small
make_dump hostile
"$top_builddir/bench/write_large_dump" 4 10000 >"$work/large.bin" 2>/dev/null
make_graphs small "$work/small.bin"
make_graphs hostile "$work/hostile.bin"
make_graphs large "$work/large.bin"
make_graphs comparison --diff "$work/small.bin" "$work/hostile.bin"
make_graphs empty "$work/small.bin" --include nothing-like-it
python3 "$top_srcdir/tests/end-to-end/flame-graph.py" "$work/small" \
	"$work/hostile" "$work/large" "$work/comparison" "$work/empty"
