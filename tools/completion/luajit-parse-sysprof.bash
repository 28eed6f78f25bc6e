# SPDX-License-Identifier: MIT
# bash completion of luajit-parse-sysprof. Asks the command itself for its
# formats and options, so it knows those of the installed one.

_luajit_parse_sysprof_help()
{
	luajit-parse-sysprof --help 2>/dev/null
}

# What may follow --NAME= ; nothing: file names.
_luajit_parse_sysprof_values()
{
	case $1 in
	--format)
		_luajit_parse_sysprof_help | awk '
			/--format=NAME/ { on = 1; next }
			on && /^ *-/ { exit }
			on { print $1 }'
		;;
	--lines) echo leaf all ;;
	--group) echo process thread vm coroutine label state ;;
	--state)
		echo INTERP LFUNC FFUNC CFUNC GC EXIT RECORD OPT ASM TRACE
		;;
	esac
}

_luajit_parse_sysprof_options()
{
	_luajit_parse_sysprof_help |
		grep -oE -- '(^|[ ,])--[a-z-]+(\[?=)?' | tr -d ' ,' |
		sed 's/\[=*$//' | sort -u
}

# Lists as in --state=GC,TRACE: the last part is completed.
_luajit_parse_sysprof_list()
{
	local done=

	[[ $2 != *,* ]] || done=${2%,*},
	mapfile -t COMPREPLY < <(compgen -P "$done" \
		-W "$(_luajit_parse_sysprof_values "$1")" -- "${2##*,}")
}

_luajit_parse_sysprof()
{
	local current=${COMP_WORDS[COMP_CWORD]}
	local before=${COMP_WORDS[COMP_CWORD - 1]}

	COMPREPLY=()
	# bash takes the = of --format=svg for a word of its own.
	if [[ $current == = ]]; then
		current=
	elif [[ $before == = ]]; then
		before=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	case $before in
	--format | --lines | --group | --state)
		_luajit_parse_sysprof_list "$before" "$current"
		return
		;;
	esac
	if [[ $current == -* ]]; then
		mapfile -t COMPREPLY < <(compgen \
			-W "$(_luajit_parse_sysprof_options)" -- "$current")
		[[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2>/dev/null || :
		return
	fi
	mapfile -t COMPREPLY < <(compgen -f -- "$current")
}

complete -o filenames -F _luajit_parse_sysprof luajit-parse-sysprof
