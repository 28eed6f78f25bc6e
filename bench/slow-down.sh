#!/bin/sh
# SPDX-License-Identifier: MIT
# How much slower programs get by a profile in mode C, by signals to an empty handler,
# and by perf record at the same rate:
#
#   bench/slow-down.sh BUILD-DIRECTORY [ROUNDS]
#
# Needs perf and the right to record. Prints, of the time that the VM's thread had a
# CPU, interrupts included, the ratio to that without a profiler: the median of the
# rounds and their quartiles (see paired.lua).
set -eu

build=${1:?usage: slow-down.sh BUILD-DIRECTORY [ROUNDS]}
rounds=${2:-15}
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$build" && pwd)
: "${LUAJIT:=luajit}"
LUA_CPATH="$build/lib/.libs/?.so;;"
export LUA_CPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for program in ray_tracer json scheduler; do
	for jit in on off; do
		mkdir "$work/$program-$jit"
		cd "$work/$program-$jit"
		"$LUAJIT" "-j$jit" "$here/slow-down.lua" \
			"$here/../tests/programs/$program.lua" "$build" \
			"$rounds"
	done
done
