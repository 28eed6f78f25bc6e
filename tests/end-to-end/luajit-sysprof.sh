#!/bin/sh
# SPDX-License-Identifier: MIT
# luajit-sysprof doctor and perf-command: what they find, set and refuse; with
# real perf, the command that is printed records.
. "${top_srcdir:?run by make check}/tests/common.sh"
. "$top_srcdir/tests/end-to-end/perf-probe.sh"
check_perf
need_luajit
grep -q luajit_sysprof/sample "$tracing/uprobe_events" &&
	skip "somebody uses the probe luajit_sysprof:sample"
pid='' other=

clean_up()
{
	for process in $pid $other; do
		kill "$process" 2>/dev/null || :
		wait "$process" 2>/dev/null || :
		rm -f "/tmp/perf-$process.map" "/tmp/jit-$process.dump"
	done
	for event in sample sample_2; do
		echo "-:luajit_sysprof/$event" \
			>>"$tracing/uprobe_events" 2>/dev/null || :
	done
	umount "$work/noexec" 2>/dev/null || :
	remove_probe
}

# expect STATUS TEXT ARGUMENT...: exit status, and a text in what is printed.
expect()
{
	expected=$1
	text=$2
	shift 2
	got=0
	"$sysprof" "$@" >"$work/out" 2>"$work/err" || got=$?
	[ "$got" -eq "$expected" ] || complain "$*: exit status $got"
	cat "$work/out" "$work/err" | grep -q -- "$text" ||
		complain "$*: no '$text' in $(cat "$work/out" "$work/err")"
}

expect 0 perf-command --help
expect 0 'luajit-sysprof (' --version
expect 2 Usage
expect 2 "unknown command 'x'" x
expect 2 "expected a process id, got '0'" doctor 0
expect 2 'expected the PID' perf-command
expect 1 'there is none' perf-command 4194304
expect 1 'has not loaded libluajit-sysprof' perf-command $$
expect 1 '^BAD .*has not loaded the profiler' doctor $$
expect 1 '^BAD .*/nonexistent' doctor -d /nonexistent
expect 1 'too short' doctor -i /dev/null

mkdir "$work/noexec"
if mount -t tmpfs -o noexec nodev "$work/noexec" 2>/dev/null; then
	expect 1 'mounted noexec.*perf_dir' doctor -d "$work/noexec"
	cat >"$work/noexec.lua" <<-'END'
		print(require("misc").sysprof.start { mode = "L",
			perf = "jitdump", path = "/dev/null", perf_dir = arg[1] })
	END
	got=$("$LUAJIT" "$work/noexec.lua" "$work/noexec" | tr '\n' ' ')
	case $got in
	"nil"*"mounted noexec"*"perf_dir"*) ;;
	*) complain "start in a noexec directory: $got" ;;
	esac
else
	echo "not run: a noexec directory (no right to mount)"
fi

# --- a process that is profiled -----------------------------------------------

cat >"$work/spin.lua" <<'END'
local sysprof = require("misc").sysprof
assert(sysprof.start { mode = "C", interval = 1, perf = "jitdump",
	path = "/dev/null" })
io.stdout:write("ready\n")
io.stdout:flush()
local function spin()
	local sum = 0
	for i = 1, 100000 do
		sum = sum + i % 7
	end
	return sum
end
local finish = os.clock() + 60
repeat
	spin()
until os.clock() > finish
END
mkfifo "$work/ready"
"$LUAJIT" "$work/spin.lua" >"$work/ready" &
pid=$!
read -r _ <"$work/ready"
sleep 0.7 # names are written twice a second

expect 0 'has loaded .*libluajit-sysprof.so' doctor "$pid"
grep -q 'note .*the probe is not set' "$work/out" || complain "doctor: no probe"
grep -q "ok .*/tmp/perf-$pid.map has [1-9]" "$work/out" || complain "doctor: map"
grep -q "ok .*jitdump /tmp/jit-$pid.dump" "$work/out" || complain "doctor: jitdump"
expect 0 'would set p:luajit_sysprof/sample' perf-command --dry-run "$pid"
grep -q luajit_sysprof/sample "$tracing/uprobe_events" &&
	complain "a dry run sets the probe"

expect 0 "^perf record -e luajit_sysprof:sample -g -p $pid\$" \
	perf-command "$pid"
expect 0 "^perf record -e luajit_sysprof:sample -g -p $pid\$" \
	perf-command "$pid"
[ "$(grep -c luajit_sysprof/sample "$tracing/uprobe_events")" -eq 1 ] ||
	complain "the probe is set twice"
expect 0 'ok .*the probe is set: luajit_sysprof:sample' doctor "$pid"

# Another copy of the library has an event of its own: a second probe of one that is
# being recorded would break tracing when perf ends.
mkdir "$work/copy"
copy=$work/copy/libluajit-sysprof.so.0
cp "$(readlink -f "$top_builddir/lib/.libs/libluajit-sysprof.so")" "$copy"
LD_PRELOAD=$copy "$LUAJIT" "$work/spin.lua" >"$work/ready" &
other=$!
read -r _ <"$work/ready"
"$PERF" record -q -e luajit_sysprof:sample -g -p "$pid" -o "$work/data" sleep 1 &
recorder=$!
sleep 0.5
expect 0 "^perf record -e luajit_sysprof:sample_2 -g -p $other\$" \
	perf-command "$other"
expect 0 "^perf record -e luajit_sysprof:sample_2 -g -p $other\$" \
	perf-command "$other"
grep -q "^p:luajit_sysprof/sample_2 $copy:" "$tracing/uprobe_events" ||
	complain "the copy has no probe"
wait "$recorder" || complain "perf record of one of two probes"
"$PERF" record -q -e luajit_sysprof:sample_2 -g -p "$other" -o "$work/data" sleep 1
"$PERF" script -i "$work/data" -F ip,sym 2>/dev/null |
	grep -q 'spin .*spin.lua:6' || complain "no samples of the copy's probe"
kill "$other"

line=$("$sysprof" perf-command "$pid")
# shellcheck disable=SC2086 # words of a command
"$PERF" ${line#perf } -q -o "$work/data" sleep 1
"$PERF" script -i "$work/data" -F ip,sym 2>/dev/null |
	grep -c 'spin .*spin.lua:6' >"$work/count" || :
[ "$(cat "$work/count")" -ge 100 ] ||
	complain "only $(cat "$work/count") samples by the printed command"
expect 1 'BAD .*another clock' doctor -i "$work/data"
"$PERF" record -q -k mono -e cpu-clock:u -p "$pid" -o "$work/mono" sleep 0.2
expect 0 'ok .*monotonic clock' doctor -i "$work/mono"
grep -q 'seen a jitdump: perf inject --jit' "$work/out" ||
	complain "doctor: the jitdump of the recording"
