#!/bin/sh
# SPDX-License-Identifier: MIT
# perf record beside the profiler, on stock luajit: the stacks in perf are those
# of the dump, every single one, and as often.
# perf shows 127 frames at most unless a setting of the machine is changed; the
# programs stay below that.
. "${top_srcdir:?run by make check}/tests/common.sh"
seconds=${PERF_LIVE_SECONDS:-2}
programs=$top_srcdir/tests/end-to-end/perf-live

. "$top_srcdir/tests/end-to-end/perf-probe.sh"
check_perf
need_luajit
set_probe "$top_builddir/lib/.libs/libluajit-sysprof.so"

# record PROGRAM-MODE, where the mode is interpreted or compiled: leaves perf.data
# and the dump in $work/PROGRAM-MODE.
record()
{
	case $1 in
	*-interpreted) jit=-joff ;;
	*) jit=-jon ;;
	esac
	mkdir "$work/$1"
	"$PERF" record -q -N -e "$event" -g -m 1024 -o "$work/$1/data" \
		"$LUAJIT" $jit "$programs/run.lua" "$programs/${1%-*}.lua" \
		"$work/$1/dump" "$seconds" >"$work/$1/samples"
}

# Text of both sides. The map file has served when perf has read it.
print_stacks()
{
	"$PERF" script -i "$work/$1/data" -F ip,sym,dso --no-inline \
		--show-mmap-events --show-lost-events \
		>"$work/$1/perf" 2>"$work/$1/warnings"
	map=$(sed -n 's|.* (\(/tmp/perf-[0-9]*\.map\))$|\1|p' \
		"$work/$1/perf" | head -n 1)
	[ -z "$map" ] || rm -f "$map"
	"$parser" --host-addresses "$work/$1/dump" >"$work/$1/folded"
	"$parser" "$work/$1/dump" >"$work/$1/named"
}

# compare RUN FOLDED
compare()
{
	"$LUAJIT" "$programs/compare.lua" "$work/$1/perf" "$work/$1/$2" \
		"$programs/${1%-*}.lua" "$work/$1/named" "${1##*-}"
}

# At 1 ms there is a sample a millisecond, give or take.
check_samples()
{
	read -r samples <"$work/$1/samples"
	[ "$samples" -ge $((seconds * 500)) ] ||
		complain "$1: only $samples samples in $seconds s"
}

# A comparison that cannot fail proves nothing.
check_comparison()
{
	sed '1s/ [0-9]*$/ 999999/' "$work/$1/folded" >"$work/$1/count"
	sed '1d' "$work/$1/folded" >"$work/$1/line"
	sed '1s/^[^;]*;/0x1;/' "$work/$1/folded" >"$work/$1/root"
	for wrong in count line root; do
		if compare "$1" $wrong >/dev/null; then
			complain "self-test: a wrong $wrong was not noticed"
		fi
	done
}

for program in recursion callbacks coroutines strings; do
	for mode in interpreted compiled; do
		run=$program-$mode
		record "$run" || fail "$run: perf record failed"
		print_stacks "$run"
		printf '%-24s ' "$run"
		compare "$run" folded || complain "$run"
		check_samples "$run"
	done
done
check_comparison recursion-interpreted
