# SPDX-License-Identifier: MIT
# Sourced after common.sh by the tests that need real perf: skips where it cannot
# be had, and sets the probe of the profiler under a name that no one else uses.
# Sets $event.
# shellcheck shell=sh
: "${work:?}" "${tracing:?}"

group=sysprof_test_$$
# shellcheck disable=SC2034 # used by the tests
event=$group:sample

clean_up()
{
	remove_probe
}

remove_probe()
{
	# >> and not >, which would remove everybody's probes.
	[ ! -s "$work/probe" ] ||
		echo "-:$group/sample" >>"$tracing/uprobe_events" 2>/dev/null || :
}

check_perf()
{
	[ "${SANITIZERS:-no}" = no ] ||
		skip "a sanitizer adds frames and cannot be loaded by luajit"
	[ "$(id -u)" = 0 ] || skip "only root may set probes"
	need_perf
	has_tracing || skip "no tracefs with uprobe_events that answers at $tracing"
}

# set_probe OBJECT: goes perf's own way from the object's note to a probe.
set_probe()
{
	set -- "$(readlink -f "$1")"
	"$PERF" --buildid-dir "$work/cache" buildid-cache --add "$1"
	"$PERF" --buildid-dir "$work/cache" list sdt >"$work/list" 2>&1
	grep -q 'sdt_luajit_sysprof:sample' "$work/list" ||
		fail "perf does not see the probe luajit_sysprof:sample in $1"
	"$PERF" --buildid-dir "$work/cache" probe -x "$1" \
		-D sdt_luajit_sysprof:sample >"$work/probe"
	sed -i "s|^p:sdt_luajit_sysprof/|p:$group/|" "$work/probe"
	cat "$work/probe" >>"$tracing/uprobe_events" ||
		skip "the kernel refuses the probe"
}
