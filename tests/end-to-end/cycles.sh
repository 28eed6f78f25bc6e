#!/bin/sh
# SPDX-License-Identifier: MIT
# A thousand starts and stops leave nothing behind.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit
"$LUAJIT" "$top_srcdir/tests/end-to-end/cycles.lua" 1000
