#!/bin/sh
# SPDX-License-Identifier: MIT
# Names of traces in map file and jitdump, on stock luajit.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit
: "${LUA_CPATH:=;;}"
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
