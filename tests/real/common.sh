# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# For the tests with real programs: a directory of their own, the commands, and
# what a dump must show. Sourced, after `program=NAME`.
set -eu

: "${program:?}" "${top_builddir:?run by make check}"
skip()
{
	echo "SKIP: $*"
	exit 77
}

fail()
{
	echo "FAIL: $*"
	exit 1
}

if [ "${SANITIZERS:-no}" = yes ]; then
	skip "the LuaJIT of this system is not built with sanitizers"
fi
command -v "$program" >/dev/null || skip "$program is not installed"
tools=$(cd "$top_builddir/tools" && pwd)
# shellcheck disable=SC2034 # for the tests that source this
record=$tools/luajit-sysprof
parser=$tools/luajit-parse-sysprof
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset LUA_CPATH

# count DUMP REGEX: samples whose stack matches, from its root to its leaf.
count()
{
	"$parser" "$1" 2>parser.err | grep -E "$2" |
		awk '{ sum += $NF } END { print sum + 0 }'
}

at_least()
{
	[ "$2" -ge "$3" ] || fail "$1: only $2 samples, not $3"
}

# A dump is whole only if its end record is there.
check_whole()
{
	[ "$(tail -c 1 "$1" | od -An -tx1)" = " 80" ] ||
		fail "$1 has no end record"
}
