#!/bin/sh
# SPDX-License-Identifier: MIT
# What perf makes of map files, for code in memory of each kind: the rules that ours
# keeps, and those that are why. Names come through what stackcollapse-perf.pl does
# with them.
. "${top_srcdir:?run by make check}/tests/common.sh"
: "${STACKCOLLAPSE:=stackcollapse-perf.pl}"
. "$top_srcdir/tests/end-to-end/perf-record.sh"
check_recording
need_luajit
rules=$top_srcdir/tests/end-to-end/perf-rules
program=$top_builddir/tests/end-to-end/perf_map_program
maps=

clean_up()
{
	# shellcheck disable=SC2086 # words
	rm -f $maps
}

# record OUTPUT COMMAND...: sets map, the path of its map file.
record()
{
	output=$1
	shift
	"$PERF" record -q -e cpu-clock:u -F 2000 -o "$work/$output" "$@" \
		>"$work/$output.out" 2>"$work/$output.log"
	map=/tmp/perf-$("$PERF" script -i "$work/$output" -F comm,pid \
		2>/dev/null | awk '$1 != "perf" { print $(NF); exit }').map
	maps="$maps $map"
}

# look: samples by name, or by object where they have none, to $work/names.
look()
{
	"$PERF" script -i "$work/areas" -F ip,sym,dso 2>"$work/script.log" |
		sed 's/^ *[0-9a-f]* //
			/^\[unknown\]/ {
				s/^\[unknown\] (\(.*\))$/in \1/
				b
			}
			s/ ([^(]*)$//' | sort | uniq -c >"$work/names"
}

# samples NAME: how many.
samples()
{
	awk -v name="$1" '{
		count = $1
		sub(/^ *[0-9]+ /, "")
		if ($0 == name) found = count
	} END { print found + 0 }' "$work/names"
}

# shown NAME..., hidden NAME...: has a sample, has none.
shown()
{
	for name; do
		[ "$(samples "$name")" -gt 0 ] || complain "$what: no '$name'"
	done
}

hidden()
{
	for name; do
		[ "$(samples "$name")" -eq 0 ] || complain "$what: '$name'"
	done
}

# line KIND NUMBER FORMAT...: a line of a map for that function; the format gets its
# address.
line()
{
	# shellcheck disable=SC2059 # the format is the test's
	printf "$3" "$(awk -v kind="$1" -v number="$2" \
		'$1 == kind && $2 == number { print $3 }' "$work/areas.out")"
}

# every KIND: all of its functions, by the names KIND_NUMBER.
every()
{
	awk -v kind="$1" '$1 == kind {
		print $3, "1b", kind "_" $2
	}' "$work/areas.out"
}

# count KIND: how many of them have samples under their names.
count()
{
	grep -c " $1_[0-9]*\$" "$work/names" || :
}

record areas "$program" 1.5

# --- memory that is looked up -----------------------------------------------------

for kind in anon protected heap shared memfd; do
	every $kind
done >"$map"
look
for kind in anon protected heap shared; do
	[ "$(count $kind)" -eq 16 ] ||
		complain "$kind: $(count $kind) of 16 functions have names"
done
[ "$(count memfd)" -eq 0 ] || complain "memfd: perf has names for it"
what="memory"
shown 'in /memfd:code (deleted)'

# --- lines ------------------------------------------------------------------------

{
	line anon 0 '%s 1b a\n'
	line anon 1 '%s 1b ab\n'
	line anon 2 '%s 1b abc\n'
	line anon 3 '%s 0 empty_size\n'
	line anon 4 '0x%s 0x1b prefixed\n'
	line anon 5 '%s 1b with  spaces a.lua:1\n'
	line anon 6 '%s 1b older_6\n'
	line anon 6 '%s 1b newer_6\n'
	line anon 15 '%s 1b last_line'
} >"$map"
look
what="lines"
hidden a ab empty_size last_line
shown abc prefixed 'with  spaces a.lua:1' last_lin
# Either: which one differs with the number of lines.
older=$(samples older_6)
newer=$(samples newer_6)
if [ "$older" -eq 0 ] && [ "$newer" -eq 0 ]; then
	complain "overlap: neither name is shown"
elif [ "$older" -gt 0 ] && [ "$newer" -gt 0 ]; then
	complain "overlap: both names are shown"
fi

rm -f "$map"
look
what="no map"
hidden abc
[ "$(samples "in $map")$(samples 'in //anon')" != 00 ] ||
	complain "no map: samples are gone"

# --- whose file it is -------------------------------------------------------------

if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	every anon >"$map"
	chown 65534:65534 "$map"
	look
	[ "$(count anon)" -eq 16 ] || complain "owner: nobody's map is not used"
	chown 0:0 "$map"
	chmod 755 "$work"
	for mode in 600 644; do
		chmod $mode "$map"
		chmod 644 "$work/areas"
		setpriv --reuid=65534 --regid=65534 --clear-groups \
			"$PERF" script -f -i "$work/areas" -F ip,sym \
			2>"$work/script.log" |
			grep -c ' anon_' >"$work/count" || :
		read -r named <"$work/count"
		case $mode-$named in
		600-0 | 644-[1-9]*) ;;
		*) complain "mode $mode: $named samples have names" ;;
		esac
	done
else
	echo "not run: owners of files (needs root)"
fi

# --- a million lines --------------------------------------------------------------

{
	line anon 0 '%s 1b first_of_many\n'
	awk 'BEGIN {
		for (i = 0; i < 1000000; i++)
			printf "1%07x0 10 function_%d file.lua:%d\n", i, i, i
	}'
	line anon 15 '%s 1b last_of_many\n'
} >"$map"
start=$(date +%s)
look
seconds=$(($(date +%s) - start))
what="a million lines"
shown first_of_many last_of_many
[ $seconds -le 60 ] || complain "a million lines: $seconds s"
echo "a million lines: $seconds s"
rm -f "$map"

# --- names ------------------------------------------------------------------------

# collapse DATA: frames as a flame graph has them; by the real thing if it is there.
collapse()
{
	if command -v "$STACKCOLLAPSE" >/dev/null; then
		"$PERF" script -i "$work/$1" -F comm,pid,tid,time,event,ip,sym,dso \
			2>/dev/null | awk '{
				# As with a call chain: the frame in a line of its own.
				sub(/^ +/, "")
				match($0, /: +[0-9a-f]+ /)
				print substr($0, 1, RSTART)
				print "\t" substr($0, RSTART + 1)
				print ""
			}' | "$STACKCOLLAPSE" 2>/dev/null |
			sed 's/^[^;]*;//; s/ [0-9]*$//'
	else
		"$PERF" script -i "$work/$1" -F ip,sym,dso 2>/dev/null |
			awk -f "$rules/collapse.awk"
	fi | sort -u
}

{
	line anon 0 '%s 1b (load)\n'
	line anon 1 '%s 1b f(x) a.lua:1\n'
	line anon 2 '%s 1b a;b\n'
	line anon 3 '%s 1b quo"te\n'
	line anon 4 '%s 1b offset+0x12\n'
	line anon 5 '%s 1b to->there\n'
} >"$map"
collapse areas >"$work/collapsed"
for name in f a:b quote offset 'to;there_[i]'; do
	grep -qxF "$name" "$work/collapsed" ||
		complain "names: no '$name' in a flame graph"
done
grep -q 'load' "$work/collapsed" && complain "names: '(load)' in a flame graph"

record odd "$LUAJIT" "$rules/odd_names.lua" "$work/dump"
sed -n 's/^[0-9a-f]* [0-9a-f]* \(TRACE_.*\)$/\1/p' "$map" | sort -u >"$work/given"
collapse odd | grep 'TRACE_' >"$work/collapsed"
# Those that ran long enough for a sample.
comm -13 "$work/given" "$work/collapsed" >"$work/changed"
[ ! -s "$work/changed" ] || {
	complain "names that are changed in a flame graph:"
	cat "$work/changed"
}
for part in 'plain\.lua' '\[load\]' 'x\\x28y' 'semi\\x3bcolon' 'caf' 'there\.lua'; do
	grep -q "TRACE_.*$part" "$work/collapsed" || complain "names: no $part"
done
echo "$(wc -l <"$work/collapsed") odd names, as they were given"
