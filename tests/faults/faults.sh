#!/bin/sh
# SPDX-License-Identifier: MIT
# Every error path that allocates or opens, by a preload that fails the n-th call.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit
preload=$top_builddir/tests/faults/.libs/fail_nth.so
LD_PRELOAD=$preload "$LUAJIT" "$top_srcdir/tests/faults/faults.lua"
