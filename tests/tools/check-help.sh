#!/bin/bash
# SPDX-License-Identifier: MIT
# The help, the manual page and the completion of luajit-parse-sysprof know the
# same options and formats.
set -o pipefail
. "${top_srcdir:?run by make check}/tests/common.sh"
PATH=$top_builddir/tools:$PATH
page=$top_srcdir/doc/luajit-parse-sysprof.1
. "$top_srcdir/tools/completion/luajit-parse-sysprof.bash"

# reply WORD...: completes the last word.
reply()
{
	COMP_WORDS=(luajit-parse-sysprof "$@")
	COMP_CWORD=$#
	_luajit_parse_sysprof
}

# completes EXPECTED WORD...: the reply must have it.
completes()
{
	local expected=$1

	shift
	reply "$@"
	[[ " ${COMPREPLY[*]} " == *" $expected "* ]] ||
		fail "'$*' is not completed to $expected: ${COMPREPLY[*]}"
}

mapfile -t options < <(luajit-parse-sysprof --help |
	grep -oE -- '--[a-z]+(-[a-z]+)*' | sort -u)
[ ${#options[@]} -gt 20 ] || fail "only ${#options[@]} options in the help"
for option in "${options[@]}"; do
	grep -q -e "Fl ${option#-}\( \|\$\)" "$page" ||
		fail "$option is not in the manual page"
	reply "${option%?}"
	[[ " ${COMPREPLY[*]} " == *" $option"[=\ ]* ]] ||
		fail "$option is not completed: ${COMPREPLY[*]}"
done

mapfile -t formats < <(_luajit_parse_sysprof_values --format)
[ ${#formats[@]} -gt 9 ] || fail "only ${#formats[@]} formats"
for format in "${formats[@]}"; do
	grep -q "^\.It Cm $format\( \|\$\)" "$page" ||
		fail "format $format is not in the manual page"
	completes "$format" --format = "${format%?}"
done
completes GC,TRACE --state = GC,TR
completes leaf --lines = l
completes coroutine --group co
completes label --group la
[[ -z $(type -t _nothing_like_it) ]] # bash, and no other shell

touch sysprof.bin
completes sysprof.bin sys
