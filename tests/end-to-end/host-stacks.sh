#!/bin/sh
# SPDX-License-Identifier: MIT
# How many samples reach the program's entry: 99.8 % have to, on programs of
# every kind and on hosts without frame pointers or debug information.
. "${top_srcdir:?run by make check}/tests/common.sh"
need_luajit
programs=$top_srcdir/tests/end-to-end/host-stacks
seconds=${HOST_STACKS_SECONDS:-2}
failed=no

# judge NAME ROOT FUNCTION: of the dump NAME.bin at least 99.8 % of the samples
# are to start at ROOT, and the function is to be there.
judge()
{
	"$parser" "$1.bin" >"$1.folded" 2>"$1.err" || { cat "$1.err"; exit 1; }
	awk -v name="$1" -v root="$2" -v wanted="$3" '
		{ all += $NF }
		$0 ~ root { whole += $NF }
		index($0, wanted) { found += $NF }
		END {
			printf "%-22s %6d samples, %.3f %% reach the entry\n",
				name, all, all ? 100 * whole / all : 0
			exit !(all >= 3000 && found >= all / 10 &&
				whole >= 0.998 * all)
		}' "$1.folded" || {
		failed=yes
		grep -v "$2" "$1.folded" | head -n 5
	}
}

# run NAME FUNCTION COMMAND...
run()
{
	name=$1
	wanted=$2
	shift 2
	"$@" "$name.bin" "$seconds" || fail "$name"
	judge "$name" '^_start;' "$wanted"
}

# build NAME FLAG...: a host in C that runs a script.
build()
{
	name=$1
	shift
	# Flags may be several words.
	# shellcheck disable=SC2046,SC2086
	$CC -O2 "$@" -o "$name" "$programs/host.c" -rdynamic \
		$(pkg-config --cflags --libs luajit) -lpthread
}

run lua-compiled spin "$LUAJIT" "$programs/lua.lua"
run lua-interpreted spin "$LUAJIT" -joff "$programs/lua.lua"
run mixed gsub "$LUAJIT" "$programs/mixed.lua"
run mixed-interpreted gsub "$LUAJIT" -joff "$programs/mixed.lua"
run callbacks less "$LUAJIT" "$programs/callbacks.lua"
build host-frameless -g -fomit-frame-pointer
run host-frameless host_work ./host-frameless "$programs/host.lua"
build host-bare -g0 -s -fomit-frame-pointer
run host-bare host_work ./host-bare "$programs/host.lua"
build host-framed -g -fno-omit-frame-pointer
run host-framed host_work ./host-framed "$programs/host.lua"
./host-framed -t "$programs/host.lua" host-thread.bin "$seconds"
judge host-thread 'clone3;.*host_thread;|^libc [^;]*;libc [^;]*;host_thread;' \
	host_work
# The Lua stack is the same in a signal handler as it was when that interrupted.
for option in joff jon; do
	jit=$([ $option = joff ] && echo 'jit.off()' || echo 'jit.on()')
	{
		echo "$jit"
		cat "$programs/signals.lua"
	} >signals.lua
	run handler-$option host_handler ./host-framed signals.lua
	awk '/;host_handler/ {
			all += $NF
			if (/;outer [^;]*;middle [^;]*;.*__restore_rt;host_handler/)
				right += $NF
		}
		END {
			printf "%d samples in the handler, %d on outer\n", all,
				right
			exit !(all > 300 && right >= 0.95 * all)
		}' handler-$option.folded || {
		failed=yes
		head -n 5 handler-$option.folded
	}
done
[ $failed = no ] || fail "too many stacks are not whole"
