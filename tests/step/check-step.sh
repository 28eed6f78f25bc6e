#!/bin/sh
# SPDX-License-Identifier: MIT
# Samples short programs after every machine instruction, on the LuaJIT of this
# system: JIT off, traces compiled before, compiler running. step.lua fails on
# stacks that are wrong and do not say so, and on too many that are marked or lack
# the line of their leaf.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit

limit=60000
[ "${LONG:-no}" = no ] || limit=2000000
for mode in off on cold; do
	if ! "$LUAJIT" "$top_srcdir/tests/step/step.lua" \
		"$top_builddir/tests/step/.libs/stepper.so" $mode $limit; then
		complain "JIT $mode"
	fi
done
