# SPDX-License-Identifier: MIT
# Sourced by the tests that need real perf: skips where it cannot be had, and
# sets the probe of the profiler under a name that no one else uses.
# Sets $work, a directory of the test's own, and $event.
# shellcheck shell=sh

: "${PERF:=perf}"
tracing=/sys/kernel/tracing
group=sysprof_test_$$
# shellcheck disable=SC2034 # used by the tests
event=$group:sample

skip()
{
	echo "SKIP: $1"
	exit 77
}

# shellcheck disable=SC2317 # called by the trap
clean_up()
{
	# >> and not >, which would remove everybody's probes.
	echo "-:$group/sample" >>"$tracing/uprobe_events" 2>/dev/null || :
	rm -rf "$work"
}

check_perf()
{
	[ "${SANITIZERS:-no}" = no ] ||
		skip "a sanitizer adds frames and cannot be loaded by luajit"
	[ "$(id -u)" = 0 ] || skip "only root may set probes"
	command -v "$PERF" >/dev/null ||
		skip "perf is missing (Debian package: linux-perf)"
	[ -e "$tracing/uprobe_events" ] ||
		mount -t tracefs nodev "$tracing" 2>/dev/null || :
	[ -e "$tracing/uprobe_events" ] ||
		skip "no tracefs with uprobe_events at $tracing"
	work=$(mktemp -d)
	# Without the settings of the user, and without ~/.debug.
	HOME=$work
	export HOME
	trap clean_up EXIT
	trap 'exit 1' HUP INT TERM
}

# set_probe OBJECT: goes perf's own way from the object's note to a probe.
set_probe()
{
	set -- "$(readlink -f "$1")"
	"$PERF" --buildid-dir "$work/cache" buildid-cache --add "$1"
	"$PERF" --buildid-dir "$work/cache" list sdt >"$work/list" 2>&1
	grep -q 'sdt_luajit_sysprof:sample' "$work/list" || {
		echo "perf does not see the probe luajit_sysprof:sample in $1"
		exit 1
	}
	"$PERF" --buildid-dir "$work/cache" probe -x "$1" \
		-D sdt_luajit_sysprof:sample >"$work/probe"
	sed -i "s|^p:sdt_luajit_sysprof/|p:$group/|" "$work/probe"
	cat "$work/probe" >>"$tracing/uprobe_events" ||
		skip "the kernel refuses the probe"
}
