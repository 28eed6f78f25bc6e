#!/bin/sh
# SPDX-License-Identifier: MIT
# The native unwinder for aarch64, built with a cross compiler and run by qemu.
# The rest of the profiler has no such build yet.
set -eu

: "${top_srcdir:?run by make check}"
compiler=aarch64-linux-gnu-gcc
for tool in $compiler qemu-aarch64; do
	command -v "$tool" >/dev/null || {
		echo "SKIP: $tool is not installed (Debian packages:" \
			"gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)"
		exit 77
	}
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
lib=$top_srcdir/lib

for optimisation in -O0 -O2 '-O2 -mbranch-protection=standard'; do
	echo "built with $optimisation"
	# Flags are several words. Of LuaJIT only the headers are used.
	# shellcheck disable=SC2046,SC2086
	$compiler -std=gnu11 -g $optimisation -Wall -Wextra -Wshadow -Werror \
		-D_GNU_SOURCE -I "$lib" $(pkg-config --cflags luajit) \
		-o "$work/program" \
		"$top_srcdir/tests/aarch64/unwind_program.c" \
		"$lib/host/cfa_program.c" "$lib/host/dwarf_cursor.c" \
		"$lib/host/eh_frame.c" "$lib/host/elf_image.c" \
		"$lib/host/mappings.c" "$lib/host/own_memory.c" \
		"$lib/host/unwind_aarch64_sig.c" \
		"$lib/host/unwind_guess_sig.c" \
		"$lib/host/unwind_rows.c" "$lib/host/unwind_table.c" \
		"$lib/host/unwind_table_sig.c" "$lib/error.c" \
		"$lib/load_faults.c" "$lib/load_sig.c" -lpthread
	qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu "$work/program"
done
