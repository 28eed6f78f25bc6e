#!/bin/sh
# SPDX-License-Identifier: MIT
# vm-layout-probe on a library that has the structures of a LuaJIT at offsets of
# its own, on one without debug information, and on one that lacks a structure.
# $CC may be several words:
# shellcheck disable=SC2086
. "${top_srcdir:?run by make check}/tests/common.sh"
probe=$top_builddir/tools/vm-layout-probe

build()
{
	$CC -shared -fPIC "$@" "$top_srcdir/tests/vm_layout_fixture.c"
}

build -g -o fixture.so
"$probe" fixture.so >row.txt || fail "fixture.so"
tr -s ' \t\n' ' ' <row.txt >row
has()
{
	grep -qF "$1" row || {
		cat row.txt
		fail "the row lacks: $1"
	}
}
has '.gc64 = true,'
has '.thread = { .status = 11, .global = 16, .base = 32, .top = 40,'
has '/* .object as in "upstream, GC64, 2017-05 (8271c643)" */'
has '/* .string as in "upstream, GC64, 2020-06 (ff34b48d)" */'
has '/* .trace as in "upstream, GC64, 2019-01 (749e99ce)" */'
has '/* .snapshot as in "upstream, GC64, 2021-03 (a32aeadc)" */'
has '.gc_total = 16, .gc_pause = 36, .gc_step_multiplier = 32,'
has '.hook_mask = 40, .vmstate = 44, .main_thread = 48, .registry = 56,'
has '.hook_function = 64, .panic_function = 72,'
has '.current_thread = 80, .jit_base = 88 },'
has '.jit = { .traces = 104, .trace_count = 100, .exit_parent = 112,'
has '.exit_number = 116, .code_area = 120 },'
has '.gg_global = 96, .gg_jit = 192, .gg_dispatch = 344,'
has '.bytecode_count = 99, .interpreter_state_count = 3,'
has '.cframe = { .bytes = 96, .result_count = 8, .thread = 16,'
! grep -q '.global as in' row || fail "no build has these offsets"

# What it prints is a row that compiles.
{
	echo '#include "vm/layout.h"'
	echo 'const struct vm_layout row[] = {'
	cat row.txt
	echo '};'
} >row.c
$CC -Wall -Werror -I"$top_srcdir/lib" -c row.c || fail "row.c"

refuses()
{
	if "$probe" "$1" >out.txt 2>error.txt; then
		fail "$1 was accepted"
	fi
	[ ! -s out.txt ] || fail "$1 was refused, but a row printed"
	grep -q "$2" error.txt || {
		cat error.txt
		fail "$1: the error does not say: $2"
	}
}
build -g0 -o stripped.so
refuses stripped.so 'no debug information'
build -g -DWITHOUT_TRACE -o traceless.so
refuses traceless.so 'no structure GCtrace'
build -g -DFRAME_BYTES=88 -o frame.so
refuses frame.so 'C frame has 88 bytes, as in no known build'
refuses missing.so 'missing.so: No such file'
