#!/bin/sh
# SPDX-License-Identifier: MIT
# Every error path that allocates or opens, by a preload that fails the n-th call.
set -eu

: "${top_srcdir:?run by make check}" "${top_builddir:?}" "${LUAJIT:?}"
if [ "${SANITIZERS:-no}" = yes ]; then
	echo "SKIP: the LuaJIT of this system is not built with sanitizers"
	exit 77
fi
preload=$(cd "$top_builddir/tests/faults" && pwd)/.libs/fail_nth.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
LD_PRELOAD=$preload "$LUAJIT" "$top_srcdir/tests/faults/faults.lua"
