#!/bin/sh
# SPDX-License-Identifier: MIT
# Names of traces in map file and jitdump, on stock luajit.
set -eu

: "${top_srcdir:?run by make check}"
: "${LUAJIT:=luajit}"

skip()
{
	echo "SKIP: $1"
	exit 77
}

[ "${SANITIZERS:-no}" = no ] ||
	skip "the sanitizers' runtime cannot be loaded by luajit"
command -v "$LUAJIT" >/dev/null ||
	skip "luajit is missing (Debian package: luajit)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work"
"$LUAJIT" "$top_srcdir/tests/end-to-end/traces.lua" "$work"
