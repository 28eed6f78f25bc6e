#!/bin/sh
# SPDX-License-Identifier: MIT
# Samples short programs after every machine instruction, on the LuaJIT of this
# system: JIT off, traces compiled before, compiler running. step.lua fails on
# stacks that are wrong and do not say so, and on too many that are marked or lack
# the line of their leaf.
set -eu

: "${top_srcdir:?run by make check}" "${top_builddir:?}" "${LUAJIT:?}"
if [ "${SANITIZERS:-no}" = yes ]; then
	echo "SKIP: the LuaJIT of this system is not built with sanitizers"
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

limit=60000
[ "${LONG:-no}" = no ] || limit=2000000
failed=
for mode in off on cold; do
	if ! "$LUAJIT" "$top_srcdir/tests/step/step.lua" \
		"$top_builddir/tests/step/.libs/stepper.so" $mode $limit; then
		failed="$failed $mode"
	fi
done
[ -z "$failed" ] || {
	echo "FAIL: JIT$failed"
	exit 1
}
