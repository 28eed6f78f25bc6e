#!/bin/sh
# SPDX-License-Identifier: MIT
# Code that the signal handler can reach lives in *_sig.c and *_sig.S. Their
# objects may use each other, data of other objects, and the functions allowed
# below; anything else (malloc, stdio, locks, …) could hang or corrupt the process.
# $CC and $NM may be several words, as in "nm -B":
# shellcheck disable=SC2086
. "${top_srcdir:?run by make check}/tests/common.sh"
[ "${SANITIZERS:-no}" = no ] ||
	skip "a sanitizer adds calls of its own to every object"

# Functions of libc, each with the reason.
allowed()
{
	sed 's/[ \t]*#.*//; /^$/d' <<-'LIST'
	memcpy                # the mem* functions touch their arguments only
	memmove
	memset
	memcmp
	__memcpy_chk          # the same with _FORTIFY_SOURCE
	__memmove_chk
	__memset_chk
	sigaction             # on the list of signal-safety(7), as raise is;
	raise                 # to hand a fault on to the host's own action
	gettid                # a system call and no more, once a thread
	clock_gettime         # on the list of signal-safety(7); vDSO, no lock
	__errno_location      # address of a thread-local variable
	_GLOBAL_OFFSET_TABLE_ # put in by the compiler for PIC
	__stack_chk_fail      # put in by -fstack-protector; only called when
	                      # the stack is already overwritten
	LIST
}

objects_of()
{
	find "$@" -path '*/.libs/*.o' -print
}

# Names defined by the objects of a list: all of them, or data alone.
defined()
{
	xargs $NM -g --defined-only <"$1" | awk 'NF == 3 { print $3 }'
}

defined_data()
{
	xargs $NM -g --defined-only <"$1" |
		awk 'NF == 3 && $2 ~ /^[BCDGRSV]$/ { print $3 }'
}

# check_objects ALL_OBJECTS SIGNAL_OBJECTS: two files with a path a line.
check_objects()
{
	{
		allowed
		defined "$2"
		defined_data "$1"
	} | sort -u >"$work/may_use"
	while read -r object; do
		$NM -u "$object" | awk '{ print $NF }' | sort -u |
			comm -23 - "$work/may_use" |
			sed "s|^|${object##*/}: not async-signal-safe: |"
	done <"$2" >"$work/violations"
	cat "$work/violations"
	[ ! -s "$work/violations" ]
}

# Self-test: a planted malloc and a call into an ordinary object are found, a
# read of an ordinary object's data is not.
mkdir -p "$work/planted/.libs"
cat >"$work/good_sig.c" <<-'C'
	#include <string.h>
	extern const int table[2];
	int good(char *to);
	int good(char *to)
	{
		memset(to, 0, (unsigned)table[1]);
		return table[0];
	}
C
cat >"$work/bad_sig.c" <<-'C'
	#include <stdlib.h>
	void ordinary(void);
	void *bad(void);
	void *bad(void)
	{
		ordinary();
		return malloc(16);
	}
C
cat >"$work/ordinary.c" <<-'C'
	extern const int table[2];
	const int table[2] = {1, 2};
	void ordinary(void);
	void ordinary(void)
	{
	}
C
for name in good_sig bad_sig ordinary; do
	$CC -O2 -fPIC -c -o "$work/planted/.libs/$name.o" "$work/$name.c"
done
objects_of "$work/planted" >"$work/all"
grep 'good_sig\.o$' "$work/all" >"$work/signal"
check_objects "$work/all" "$work/signal"
grep 'bad_sig\.o$' "$work/all" >"$work/signal"
if check_objects "$work/all" "$work/signal" >"$work/found"; then
	echo "self-test: planted malloc was not found"
	exit 1
fi
grep -q 'bad_sig.*malloc$' "$work/found"
grep -q 'bad_sig.*ordinary$' "$work/found"

# Sources for other CPUs are not built.
case $(uname -m) in
x86_64) other_cpus=_aarch64_sig ;;
*) other_cpus=_x86_64_sig ;;
esac

# The real objects: one for each source, or the list would prove too little.
objects_of "$top_builddir/lib" "$top_builddir/perfmap" >"$work/all"
grep '_sig\.o$' "$work/all" >"$work/signal"
find "$top_srcdir/lib" "$top_srcdir/perfmap" -name '*_sig.[cS]' |
	sed 's|.*/||; s|\.[cS]$||' | grep -v "$other_cpus" | sort >"$work/sources"
sed 's|.*/||; s|^.*_la-||; s|\.o$||' "$work/signal" | sort -u |
	comm -23 "$work/sources" - >"$work/unbuilt"
if [ -s "$work/unbuilt" ]; then
	echo "not part of this build, so not checked:"
	cat "$work/unbuilt"
	exit 1
fi
check_objects "$work/all" "$work/signal" || exit 1
echo "$(wc -l <"$work/signal") objects checked"
