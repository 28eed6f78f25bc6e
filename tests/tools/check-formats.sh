#!/bin/sh
# SPDX-License-Identifier: MIT
# Every output format has the same samples in the same stacks: dumps of our
# encoder, and recorded ones where LUAJIT_SYSPROF_CORPUS names them. What
# Debian's go can tell of the pprof output is looked at too, where there is go.
. "${top_srcdir:?run by make check}/tests/common.sh"
need python3

for dump in small labelled hostile names; do
	"$top_builddir/tests/write_small_dump" $dump >"$work/$dump.bin"
done
"$top_builddir/bench/write_large_dump" 1 500 >"$work/large.bin" 2>/dev/null
set -- "$work/small.bin" "$work/labelled.bin" "$work/hostile.bin" \
	"$work/names.bin" "$work/large.bin"
for dump in "${LUAJIT_SYSPROF_CORPUS:-/nonexistent}"/sysprof/*.bin; do
	[ ! -e "$dump" ] || set -- "$@" "$dump"
done
python3 "$top_srcdir/tests/tools/check-formats.py" "$parser" "$@"

# Valgrind's own reader takes the Callgrind output.
if command -v callgrind_annotate >/dev/null; then
	"$parser" --format=callgrind "$work/small.bin" -o "$work/callgrind" \
		2>/dev/null
	callgrind_annotate "$work/callgrind" >"$work/annotated"
	for line in '^7 .*PROGRAM TOTALS' '^2 .*app.lua:fib app.lua:3'; do
		grep -q "$line" "$work/annotated" ||
			{ cat "$work/annotated"; exit 1; }
	done
	echo "callgrind_annotate agrees"
fi

if "$parser" --help | grep -q 'not in this build'; then
	exit 0
fi
if ! command -v go >/dev/null; then
	echo "without go tool pprof: go is not installed"
	exit 0
fi

# pprof itself reads what we write, and adds up to the same.
export HOME="$work" PPROF_TMPDIR="$work"
"$parser" --format=pprof "$work/small.bin" -o "$work/small.pb.gz" 2>/dev/null
go tool pprof -sample_index=samples -top "$work/small.pb.gz" \
	>"$work/top" 2>"$work/err" || { cat "$work/err"; exit 1; }
grep -q 'accounting for 7, 100% of 7 total' "$work/top" ||
	{ cat "$work/top"; exit 1; }
grep -q '^ *2 28.57% .* 3 42.86%  fib app.lua:3$' "$work/top" ||
	{ cat "$work/top"; exit 1; }
go tool pprof -tags "$work/small.pb.gz" >"$work/tags" 2>/dev/null
for tag in state thread vm coroutine trace process; do
	grep -q "^ *$tag: Total" "$work/tags" ||
		{ echo "no label $tag"; cat "$work/tags"; exit 1; }
done
"$parser" --format=pprof "$work/labelled.bin" -o "$work/labelled.pb.gz" \
	2>/dev/null
go tool pprof -tags "$work/labelled.pb.gz" >"$work/tags" 2>/dev/null
grep -A 3 "^ *label: Total" "$work/tags" | grep -q '/search$' ||
	{ echo "no label of a coroutine"; cat "$work/tags"; exit 1; }
go tool pprof -lines -sample_index=samples -top "$work/small.pb.gz" \
	2>/dev/null | grep -q 'fib app.lua:3 app.lua:5' ||
	{ echo "no lines"; exit 1; }
echo "go tool pprof agrees"
