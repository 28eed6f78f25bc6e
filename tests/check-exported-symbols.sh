#!/bin/sh
# SPDX-License-Identifier: MIT
# The shared objects export exactly the listed symbols, every function of the
# public header is one of them, and none is bound to a copy of LuaJIT.
# $CC and $NM may be several words, as in "nm -B":
# shellcheck disable=SC2086
. "${top_srcdir:?run by make check}/tests/common.sh"
[ "${SANITIZERS:-no}" = no ] || skip "a sanitizer adds symbols of its own"

exported()
{
	$NM -D --defined-only "$1" | awk '{ sub(/@.*/, "", $NF); print $NF }' |
		sort
}

# Prints the difference between what an object exports and what its list says.
check_exports()
{
	sort "$2" >"$work/expected"
	exported "$1" >"$work/got"
	if ! diff "$work/expected" "$work/got" >"$work/difference"; then
		echo "$1: exported symbols (>) are not those of $2 (<):"
		grep '^[<>]' "$work/difference"
		return 1
	fi
}

# The VM of the process must be used, not a copy that comes with the library.
check_linkage()
{
	readelf -d "$1" >"$work/dynamic"
	if grep -q 'NEEDED.*luajit-5' "$work/dynamic"; then
		echo "$1: is linked to a libluajit"
		return 1
	fi
	if ! grep -q 'BIND_NOW\|FLAGS.*NOW' "$work/dynamic"; then
		echo "$1: is not linked with -z now: the signal handler" \
			"would run the dynamic loader"
		return 1
	fi
}

# Only the host's lua_* and, in the module, the library's luaM_* may be
# undefined: the linker does not complain when a part of the library is missing.
check_undefined()
{
	$NM -D -u "$1" | awk '$1 == "U" && $2 !~ /@/ { print $2 }' |
		grep -v -x -f "$2" >"$work/undefined" || return 0
	echo "$1: nobody will define:"
	cat "$work/undefined"
	return 1
}

# A test that cannot fail proves nothing: one symbol too many, one too few.
cat >"$work/planted.c" <<-'C'
	int lua_gettop(void);
	int absent(void);
	int listed(void);
	int listed(void)
	{
		return lua_gettop() + absent();
	}
C
$CC -shared -fPIC -o "$work/planted.so" "$work/planted.c"
echo listed >"$work/right.sym"
printf 'listed\nabsent\n' >"$work/absent.sym"
: >"$work/empty.sym"
check_exports "$work/planted.so" "$work/right.sym"
for list in absent empty; do
	if check_exports "$work/planted.so" "$work/$list.sym" >/dev/null; then
		echo "self-test: $list.sym was accepted for planted.so"
		exit 1
	fi
done
echo 'lua[LM]\?_[a-z_]*' >"$work/host"
{ cat "$work/host"; echo absent; } >"$work/more"
check_undefined "$work/planted.so" "$work/more"
if check_undefined "$work/planted.so" "$work/host" >/dev/null; then
	echo "self-test: an undefined symbol was accepted"
	exit 1
fi

status=0
for name in libluajit-sysprof misc; do
	object=$top_builddir/lib/.libs/$name.so
	if [ ! -e "$object" ]; then
		echo "$object: not built"
		exit 1
	fi
	check_exports "$object" "$top_srcdir/lib/$name.sym" || status=1
	check_linkage "$object" || status=1
	check_undefined "$object" "$work/host" || status=1
done

sed -n 's/^LUAMISC_API .*\(luaM_[a-z_]*\)(.*/\1/p' \
	"$top_srcdir/lib/lmisclib.h" | sort >"$work/declared"
grep -q '^luaM_sysprof_start$' "$work/declared"
if ! comm -23 "$work/declared" "$top_srcdir/lib/libluajit-sysprof.sym" |
	sed 's/$/: in lmisclib.h but not in libluajit-sysprof.sym/' |
	{ ! grep .; }; then
	status=1
fi
exit $status
