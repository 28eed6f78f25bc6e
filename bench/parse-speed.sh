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
printf '%-11s %9s %9s %12s\n' format seconds MB/s 'resident MB'
for format; do
	/usr/bin/time -o "$work/time" -f '%e %M' \
		"$build/tools/luajit-parse-sysprof" --format="$format" \
		"$work/dump" >"$work/out"
	awk -v format="$format" -v megabytes="$megabytes" \
		'{ printf "%-11s %9.2f %9.0f %12.0f\n", format, $1,
			megabytes / ($1 > 0 ? $1 : 0.01), $2 / 1024 }' \
		"$work/time"
done
