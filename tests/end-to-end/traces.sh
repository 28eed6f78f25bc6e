#!/bin/sh
# SPDX-License-Identifier: MIT
# Names of traces in map file and jitdump, on stock luajit.
set -eu

: "${top_srcdir:?run by make check}"
: "${LUAJIT:=luajit}" "${LUA_CPATH:=;;}"

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

# In a container the files have the pid that the process has there.
if ! unshare -mpf mount -t tmpfs nodev /tmp 2>/dev/null; then
	echo "not run: namespaces (no right to make them)"
	exit 0
fi
case $LUA_CPATH in
/tmp/*)
	echo "not run: namespaces (the build is in /tmp, which is replaced)"
	exit 0
	;;
esac
# shellcheck disable=SC2016 # expanded by the inner shell
unshare -mpf sh -c '
	mount -t tmpfs nodev /tmp && mkdir /tmp/work && cd /tmp/work &&
		"$1" "$2" /tmp/work' sh "$LUAJIT" \
	"$top_srcdir/tests/end-to-end/traces.lua"
