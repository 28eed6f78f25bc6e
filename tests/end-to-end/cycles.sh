#!/bin/sh
# SPDX-License-Identifier: MIT
# A thousand starts and stops leave nothing behind.
set -eu

: "${top_srcdir:?run by make check}" "${LUAJIT:?}"
if [ "${SANITIZERS:-no}" = yes ]; then
	echo "SKIP: the LuaJIT of this system is not built with sanitizers"
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$LUAJIT" "$top_srcdir/tests/end-to-end/cycles.lua" 1000
