#!/bin/bash
# SPDX-License-Identifier: MIT
# Everything that a change must pass, in fresh build directories below
# build/check. `./quickstart check` installs what this needs and calls it.
# Ends with "N passed, N failed, N skipped"; fails if anything failed.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$here/build/check
jobs=$(nproc)
passed=0
failed=()
skipped=()

# --- counting ----------------------------------------------------------------

fail()
{
	printf 'FAIL  %s\n' "$1"
	failed+=("$1")
}

skip()
{
	printf 'skip  %s: %s\n' "$1" "$2"
	skipped+=("$1: $2")
}

pass()
{
	printf 'ok    %s\n' "$1"
	passed=$((passed + 1))
}

# check NAME COMMAND...: one check, its output in a log.
check()
{
	local name=$1 log=$work/${1// /-}.log start=$SECONDS

	shift
	if "$@" >"$log" 2>&1 </dev/null; then
		pass "$name ($((SECONDS - start)) s)"
		return 0
	fi
	fail "$name, see $log; it ends:"
	tail -n 40 "$log" | sed 's/^/      /'
	return 1
}

# check_tool NAME TOOL COMMAND...: as check, skipped where the tool is missing.
check_tool()
{
	local name=$1 tool=$2

	shift 2
	if command -v "$tool" >/dev/null; then
		check "$name" "$@"
	else
		skip "$name" "$tool is not installed"
	fi
}

# suite NAME DIRECTORY TARGET: each test of the suite counts. Tests run one
# after the other, since some measure time.
suite()
{
	local name=$1 directory=$2 log=$work/${1// /-}.log start=$SECONDS
	local before=${#failed[@]} results result

	echo "      running $name"
	make -C "$directory" -k "$3" >"$log" 2>&1 </dev/null
	local status=$?
	mapfile -t results < <(find "$directory" -name '*.trs' | sort)
	for result in "${results[@]}"; do
		count_result "$name" "${result%.trs}" "$directory"
	done
	if [ ${#results[@]} -eq 0 ]; then
		fail "$name: no test ran, see $log"
		tail -n 40 "$log" | sed 's/^/      /'
	elif [ $status -ne 0 ] && [ ${#failed[@]} -eq "$before" ]; then
		fail "$name: make $3 failed, see $log"
	fi
	echo "      $name: ${#results[@]} tests in $((SECONDS - start)) s"
}

count_result()
{
	local title="$1: ${2#"$3"/}"

	case $(sed -n 's/^:test-result: \([A-Z]*\).*/\1/p' "$2.trs") in
	PASS)
		passed=$((passed + 1))
		;;
	SKIP)
		skip "$title" "$(skip_reason "$2.log")"
		;;
	*)
		fail "$title, see $2.log; it ends:"
		tail -n 40 "$2.log" | sed 's/^/      /'
		;;
	esac
}

# The automake driver ends each log with a line of its own.
skip_reason()
{
	grep -v -e '^$' -e '(exit status: 77)$' "$1" | tail -n 1 |
		sed 's/^SKIP: //'
}

# --- the checks --------------------------------------------------------------

# configure DIRECTORY OPTION...
configure()
(
	mkdir -p "$1" && cd "$1" && shift &&
		"$here/configure" -q --enable-werror "$@"
)

# The two targets in turn: side by side, each would build what both need.
build_targets()
{
	make -C "$1" -j "$jobs" check TESTS= && make -C "$1" -j "$jobs" bench
}

# build NAME OPTION...: programs and tests, warnings are errors.
build()
{
	local directory=$work/$1

	check "configure $1" configure "$directory" "${@:2}" &&
		check "build $1" build_targets "$directory"
}

sources()
{
	local room

	for room in lib perfmap preload tools tests bench examples; do
		[ ! -d "$here/$room" ] || find "$here/$room" -name "$1"
	done | sort
}

check_format()
{
	sources '*.[ch]' | xargs clang-format --dry-run -Werror
}

check_cppcheck()
{
	cppcheck -q --std=c11 --inline-suppr --error-exitcode=1 \
		--enable=warning,performance,portability \
		--suppress=missingIncludeSystem -I "$here/lib" -I "$here" \
		"$here/lib" "$here/perfmap" "$here/tools"
}

check_shell()
{
	{
		sources '*.sh'
		echo "$here/quickstart"
		echo "$here/.ci/run"
	} | xargs shellcheck
}

check_manuals()
{
	find "$here/doc" -name '*.[1-8]' -print0 | xargs -0 mandoc -T lint -W warning
}

check_lua_syntax()
{
	sources '*.lua' |
		luajit -e 'for file in io.lines() do assert(loadfile(file)) end'
}

check_spdx()
{
	local missing

	missing=$({
		sources '*.[chS]'
		sources '*.sh'
		sources '*.lua'
		sources '*.mk'
	} | xargs grep -L 'SPDX-License-Identifier: MIT')
	echo "$missing"
	[ -z "$missing" ]
}

# Reads of uninitialised memory, which the sanitizers do not see, on the way
# from a fresh dump to each format.
check_valgrind()
{
	local build=$work/gcc dump=$work/valgrind.bin format

	EXAMPLE_SECONDS=0.3 LUA_CPATH="$build/lib/.libs/?.so;;" luajit \
		"$here/examples/profile.lua" "$here/examples/callbacks.lua" \
		"$dump" || return 1
	for format in folded compat top svg html speedscope pprof firefox \
		callgrind json; do
		"$build/libtool" --mode=execute valgrind -q \
			--error-exitcode=9 "$build/tools/luajit-parse-sysprof" \
			--format=$format -o "$work/valgrind.$format" "$dump" ||
			return 1
	done
}

# What is lost for good in a thousand starts and stops. The reads of values that
# nobody has set are meant: the walk looks through old parts of a stack.
check_valgrind_cycles()
{
	LUA_CPATH="$work/gcc/lib/.libs/?.so;;" valgrind -q \
		--undef-value-errors=no --leak-check=full \
		--show-leak-kinds=definite --errors-for-leak-kinds=definite \
		--error-exitcode=9 luajit -joff \
		"$here/tests/end-to-end/cycles.lua" 1000 >"$work/cycles.log" 2>&1
	# Memory under valgrind grows for its own reasons.
	local status=$?

	cat "$work/cycles.log"
	[ $status -eq 0 ] || [ $status -eq 1 ] || return 1
	grep -q '^1000 cycles in' "$work/cycles.log" &&
		! grep -q 'definitely lost' "$work/cycles.log"
}

# Ring, writer and clock, the parts that two threads share.
check_threads()
(
	mkdir -p "$work/threads" && cd "$work/threads" || exit 1
	"$here/configure" -q --enable-werror CFLAGS="-g -O1 -fsanitize=thread" \
		LDFLAGS=-fsanitize=thread || exit 1
	for test in ring writer clock; do
		make -j "$jobs" "tests/unit/test_$test" &&
			"tests/unit/test_$test" || exit 1
	done
)

rm -rf "$work"
mkdir -p "$work"
cd "$here" || exit 1

check_tool "clang-format" clang-format check_format
check_tool "cppcheck" cppcheck check_cppcheck
check_tool "shellcheck" shellcheck check_shell
check_tool "mandoc lint" mandoc check_manuals
check_tool "Lua syntax" luajit check_lua_syntax
check "licence lines" check_spdx

build gcc CC=gcc && {
	suite "gcc" "$work/gcc" check
	check_tool "valgrind" valgrind check_valgrind
	check_tool "valgrind start and stop" valgrind check_valgrind_cycles
	check "distcheck" make -C "$work/gcc" distcheck-quick
}
if command -v clang >/dev/null; then
	build clang CC=clang && suite "clang" "$work/clang" check-unit
else
	skip "clang build and tests" "clang is not installed"
fi
check "thread sanitizer" check_threads
build sanitizers CC=gcc --enable-sanitizers &&
	suite "sanitizers" "$work/sanitizers" check-unit

echo
if [ ${#skipped[@]} -gt 0 ]; then
	printf 'skipped: %s\n' "${skipped[@]}"
fi
if [ ${#failed[@]} -gt 0 ]; then
	printf 'failed: %s\n' "${failed[@]%%, see *}"
fi
printf '%d passed, %d failed, %d skipped\n' "$passed" ${#failed[@]} \
	${#skipped[@]}
[ ${#failed[@]} -eq 0 ]
