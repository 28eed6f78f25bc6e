#!/bin/sh
# SPDX-License-Identifier: MIT
# Libraries that come and go while a profile runs: one that is loaded has its
# names and whole stacks at once, loading and unloading all the time neither
# crashes nor eats memory, and a constructor may stop the profile.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit
cp "$top_builddir/tests/unit/.libs/late_library.so" late.so

run()
{
	timeout 60 "$LUAJIT" "$top_srcdir/tests/end-to-end/late-library.lua" \
		"$@" >"$1.log" 2>&1 || { cat "$1.log"; fail "$1"; }
	cat "$1.log"
}

# count PATTERN: samples of the stacks that match.
count()
{
	awk -v pattern="$1" '$0 ~ pattern { sum += $NF } END { print sum + 0 }' \
		stacks
}

run load
"$parser" load.bin >stacks
late=$(count ';late_spin ')
whole=$(count '^_start;.*;main;.*;late_outer;late_spin ')
echo "$late samples in the late library, $whole of them whole"
[ "$late" -ge 300 ] || fail "only $late samples in late_spin"
[ "$whole" -ge $((late * 8 / 10)) ] || { cat stacks; fail "stacks not whole"; }

# What the tables do not know yet may be marked, and no more than that.
run again
"$parser" again.bin >stacks
[ "$(count .)" -ge 3000 ] || fail "only $(count .) samples"
[ "$(count '^_start;')" -ge $(($(count .) / 2)) ] || fail "stacks not whole"

run constructor
