#!/bin/sh
# SPDX-License-Identifier: MIT
# The native unwinder for aarch64, built with a cross compiler and run by qemu; in
# the long form also with Debian's LuaJIT for aarch64, from its mirror. The rest of
# the profiler has no such build yet.
. "${top_srcdir:?run by make check}/tests/common.sh"
compiler=aarch64-linux-gnu-gcc
need $compiler "gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
need qemu-aarch64 qemu-user
lib=$top_srcdir/lib

host="cfa_program dwarf_cursor eh_frame elf_image mappings own_memory
	unwind_aarch64_sig unwind_guess_sig unwind_rows unwind_table
	unwind_table_sig"

# build PROGRAM SOURCE FLAG...: with the native unwinder. Of LuaJIT only the
# headers are used, unless a flag says more.
build()
{
	program=$1
	sources="$top_srcdir/tests/aarch64/$2 $lib/error.c $lib/load_faults.c
		$lib/load_sig.c"
	shift 2
	for source in $host; do
		sources="$sources $lib/host/$source.c"
	done
	# Flags and names are several words.
	# shellcheck disable=SC2046,SC2086
	$compiler -std=gnu11 -g -Wall -Wextra -Wshadow -Werror -D_GNU_SOURCE \
		-I "$lib" $(pkg-config --cflags luajit) -o "$work/$program" \
		$sources "$@" -lpthread
}

for optimisation in -O0 -O2 '-O2 -mbranch-protection=standard'; do
	echo "built with $optimisation"
	# shellcheck disable=SC2086
	build program unwind_program.c $optimisation
	qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu "$work/program"
done
[ "${LONG:-no}" = yes ] || exit 0

# apt with nothing of this system's but the keys: apt COMMAND...
apt()
{
	apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
		-o Dir::Etc::sourcelist="$work/apt/sources.list" \
		-o Dir::Etc::sourceparts="$work/apt/empty" \
		-o Dir::Etc::preferencesparts="$work/apt/empty" \
		-o Dir::State="$work/apt/state" \
		-o Dir::State::status="$work/apt/status" \
		-o Dir::Cache="$work/apt/cache" -o APT::Sandbox::User=root \
		-o Acquire::Retries=2 "$@" >>"$work/apt/log" 2>&1
}

mkdir -p "$work/apt/state/lists/partial" "$work/apt/empty" \
	"$work/apt/cache/archives/partial"
: >"$work/apt/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
	"${DEBIAN_MIRROR:-http://deb.debian.org/debian} bookworm main" \
	>"$work/apt/sources.list"
(cd "$work" && apt update && apt download libluajit-5.1-2) || {
	skip "no LuaJIT for aarch64: $(tail -n 1 "$work/apt/log")"
}
dpkg-deb -x "$work"/libluajit-5.1-2_*.deb "$work/root"
libraries=$work/root/usr/lib/aarch64-linux-gnu
build vm_program vm_program.c -O2 "$lib/vm/layout.c" "$lib/vm/object_sig.c" \
	"$libraries/libluajit-5.1.so.2"
qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu \
	-E LD_LIBRARY_PATH="$libraries" "$work/vm_program"
