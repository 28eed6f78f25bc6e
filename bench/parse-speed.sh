#!/bin/sh
# SPDX-License-Identifier: MIT
# How fast luajit-parse-sysprof reads, and the memory it takes:
#
#   bench/parse-speed.sh BUILD-DIRECTORY [MEGABYTES [FORMAT...]]
#
# Needs `make check TESTS=` in the build directory, GNU time (Debian package:
# time) and room for the dump in $TMPDIR.
set -eu

build=${1:?usage: parse-speed.sh BUILD-DIRECTORY [MEGABYTES [FORMAT...]]}
megabytes=${2:-1000}
shift
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- folded top html
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$build/bench/write_large_dump" "$megabytes" >"$work/dump"
cat "$work/dump" >/dev/null # into the page cache, so that no disk is measured
# On a machine that does other things too, the CPU's seconds are those to look
# at.
printf '%-11s %9s %9s %9s %9s %12s\n' format seconds MB/s 'CPU s' MB/s \
	'resident MB'
for format; do
	/usr/bin/time -o "$work/time" -f '%e %U %S %M' \
		"$build/tools/luajit-parse-sysprof" --format="$format" \
		"$work/dump" >"$work/out"
	awk -v format="$format" -v megabytes="$megabytes" \
		'function rate(seconds)
		{ return megabytes / (seconds > 0 ? seconds : 0.01) }
		{ printf "%-11s %9.2f %9.0f %9.2f %9.0f %12.0f\n", format, $1,
			rate($1), $2 + $3, rate($2 + $3), $4 / 1024 }' \
		"$work/time"
done
