# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# Sourced first by the tests that are scripts: each runs in a directory of its own,
# $work, of which nothing is left, and all tell in the same words why they are
# skipped or have failed.
set -eu

: "${top_srcdir:?run by make check}" "${top_builddir:?run by make check}"
: "${LUAJIT:=luajit}" "${PERF:=perf}" "${CC:=cc}" "${NM:=nm}"
top_srcdir=$(cd "$top_srcdir" && pwd)
top_builddir=$(cd "$top_builddir" && pwd)
[ -z "${LUAJIT_SYSPROF_CORPUS:-}" ] ||
	LUAJIT_SYSPROF_CORPUS=$(cd "$LUAJIT_SYSPROF_CORPUS" && pwd)
sysprof=$top_builddir/tools/luajit-sysprof
parser=$top_builddir/tools/luajit-parse-sysprof
complaints=0
# Names of files that are shown if the test fails, as far as they are there.
evidence=

# --- how it ends -------------------------------------------------------------------

# To standard error: the caller's output may be what another command reads.
fail()
{
	echo "FAIL: $*" >&2
	for file in $evidence; do
		[ ! -s "$file" ] || { echo "--- $file"; head -c 20000 "$file"; } >&2
	done
	exit 1
}

# A failure after which the test goes on; not in a subshell.
complain()
{
	echo "FAIL: $*" >&2
	complaints=$((complaints + 1))
}

skip()
{
	echo "SKIP: $*" >&2
	exit 77
}

# For a test to define: what is to be ended or removed beside $work.
clean_up()
{
	:
}

# shellcheck disable=SC2317 # called by the trap
end_test()
{
	status=$1
	clean_up
	rm -rf "$work"
	[ "$complaints" -eq 0 ] || exit 1
	exit "$status"
}

work=$(mktemp -d)
trap 'end_test $?' EXIT
trap 'exit 1' HUP INT TERM
cd "$work"

# --- what it needs -----------------------------------------------------------------

# need COMMAND [PACKAGE]
need()
{
	command -v "$1" >/dev/null ||
		skip "$1 is not installed (Debian package: ${2:-$1})"
}

# For tests that start it. $LUAJIT may be several words.
need_luajit()
{
	[ "${SANITIZERS:-no}" != yes ] ||
		skip "the LuaJIT of this system is not built with sanitizers"
	need "${LUAJIT%% *}" luajit
}

# Without the settings of the user, and without ~/.debug: perf record puts objects
# there, and perf script reads what others have half written.
need_perf()
{
	need "$PERF" linux-perf
	HOME=$work
	export HOME
}

# The kernel's list of probes: is it there, mounted if need be, and does it answer?
tracing=/sys/kernel/tracing
has_tracing()
{
	mounted=no
	[ -e "$tracing/uprobe_events" ] || {
		mount -t tracefs nodev "$tracing" 2>/dev/null || return 1
		mounted=yes
	}
	"$sysprof" doctor 2>/dev/null | grep -q 'list of probes does not answer' ||
		return 0
	[ $mounted = no ] || umount -l "$tracing"
	return 1
}

# Those that are set; nothing where it cannot be known.
list_probes()
{
	! has_tracing || cat "$tracing/uprobe_events"
}

need_corpus()
{
	[ -n "${LUAJIT_SYSPROF_CORPUS:-}" ] ||
		skip "LUAJIT_SYSPROF_CORPUS does not name the dumps to compare with"
}

# --- what a dump has ----------------------------------------------------------------

# A dump is whole only if its end record is there.
check_whole()
{
	[ "$(tail -c 1 "$1" | od -An -tx1)" = " 80" ] ||
		fail "$1 has no end record"
}

# Adds up the counts that end the lines of folded stacks.
sum_samples()
{
	awk '{ sum += $NF } END { print sum + 0 }'
}

# at_least WHAT COUNT LEAST
at_least()
{
	[ "$2" -ge "$3" ] || fail "$1: only $2 samples, not $3"
}
