# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# Sourced after common.sh and command=PATH, by the tests of how a command answers:
# its exit code, what it prints (out) and what it says (err).
: "${command:?}"
evidence="out err"

# expect CODE ARGUMENT...
expect()
{
	wanted=$1
	shift
	code=0
	"$command" "$@" >out 2>err </dev/null || code=$?
	[ "$code" = "$wanted" ] ||
		fail "exit code $code, expected $wanted: $*"
}

# says FILE TEXT: the text must be there.
says()
{
	grep -qF -- "$2" "$1" || fail "expected in $1: $2"
}

silent()
{
	! grep -qF -- "$2" "$1" || fail "not expected in $1: $2"
}

# same FILE EXPECTED
same()
{
	cmp -s "$1" "$2" || fail "$1 is not as $2"
}
