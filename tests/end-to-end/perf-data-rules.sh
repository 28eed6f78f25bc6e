#!/bin/sh
# SPDX-License-Identifier: MIT
# What perf reads of a perf.data that is made from nothing: kinds of mappings, sizes
# of attributes, depths, a second event, and a jitdump. Needs no right to record.
. "${top_srcdir:?run by make check}/tests/common.sh"
. "$top_srcdir/tests/end-to-end/perf-record.sh"
check_perf
need_luajit
rules=$top_srcdir/tests/end-to-end/perf-rules
pid=$((900000000 + $$)) # no process has it
map=/tmp/perf-$pid.map

clean_up()
{
	rm -f "$map"
}

# write ATTRIBUTE-SIZE ARGUMENT...: the file, and a map that names each mapping.
write()
{
	"$LUAJIT" "$rules/perf_data.lua" "$work/data" "$pid" "$@" >"$work/starts"
	sed 's/$/ 1000 hot file.lua:1/' "$work/starts" >"$map"
}

# script OPTION...: frames and their objects.
script()
{
	"$PERF" script -i "$work/data" "$@" >"$work/script" 2>"$work/log"
}

# --- mappings that the map file is asked about --------------------------------------

# looked_up yes|no PROTECTION NAME
looked_up()
{
	write 112 map "$3" "$2"
	script -F ip,sym,dso
	found=no
	! grep -q ' hot file\.lua:1 ' "$work/script" || found=yes
	[ $found = "$1" ] || {
		complain "$2 $3: a name in the map file is used: $found"
		cat "$work/script" "$work/log"
	}
}

looked_up yes r-x //anon
looked_up yes rwx //anon
looked_up no rw- //anon
looked_up yes rwx '[heap]'
looked_up yes rwx '[stack]'
looked_up yes rwx '[stack:1]'
looked_up yes rwx /SYSV00000000
looked_up yes rwx '/dev/zero (deleted)'
looked_up yes rwx '/anon_hugepage (deleted)'
looked_up no rwx '/memfd:code (deleted)'
looked_up no r-x '[anon:luajit]'
looked_up no r-x /usr/lib/no-such-library.so

# --- sizes of attributes ------------------------------------------------------------

for bytes in 64 72 96 112 128; do
	write $bytes map //anon r-x
	script -F ip,sym
	grep -q ' hot file\.lua:1' "$work/script" || {
		complain "attributes of $bytes bytes"
		cat "$work/log"
	}
done

# --- depth --------------------------------------------------------------------------

write 112 map //anon r-x depth 300
script -F ip,sym
shown=$(grep -c 'hot' "$work/script" || :)
[ "$shown" -eq 128 ] || # one of the mapping's own sample
	complain "depth: $((shown - 1)) frames of 300 without --max-stack"
script -F ip,sym --max-stack 1000
shown=$(grep -c 'hot' "$work/script" || :)
[ "$shown" -eq 301 ] || complain "depth: $((shown - 1)) frames of 300"

# --- two events ---------------------------------------------------------------------

write 112 map //anon r-x bytes 4096 bytes 1024
"$PERF" report -i "$work/data" --stdio -g none --no-children -s sym \
	>"$work/report" 2>"$work/log"
if ! grep -q "Samples: 2  *of event 'bytes'" "$work/report" ||
	! grep -q 'Event count (approx.): 5120' "$work/report"; then
	complain "no histogram of the event 'bytes'"
	cat "$work/report" "$work/log"
fi
[ "$(grep -c '100\.00%.* hot file\.lua:1' "$work/report")" -eq 2 ] ||
	complain "not a histogram for each of two events"

# --- a jitdump ----------------------------------------------------------------------

"$top_builddir/tests/end-to-end/perf_jitdump_program" "$work" apart
dump=$(find "$work" -name 'jit-*.dump')
dump_pid=${dump##*/jit-}
set --
"$LUAJIT" "$rules/jitdump.lua" code "$dump" >"$work/code"
while read -r start time; do
	set -- "$@" code "$start" "$time"
done <"$work/code"
"$LUAJIT" "$rules/perf_data.lua" "$work/marked" "${dump_pid%.dump}" 112 \
	marker "$dump" "$@"
inject "$work/marked" "$work/injected" || complain "perf inject --jit"
"$PERF" script -i "$work/injected" -F ip,sym >"$work/script" 2>"$work/log"
names=$(grep -o 'TRACE_[0-9]*' "$work/script" | sort -u | wc -l)
[ "$names" -eq 12 ] || {
	complain "jitdump: $names of 12 names"
	cat "$work/inject.log"
}
