// SPDX-License-Identifier: MIT
/*
 * Kernel symbols: names of the kernel's functions, from /proc/kallsyms as far as
 * that tells addresses to this process. Runs on the writer thread. Read once: only
 * the running kernel knows where it was placed, so a dump has the names in it.
 */
#ifndef LIB_HOST_KERNEL_SYMBOLS_H
#define LIB_HOST_KERNEL_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host_symbol;   /* host_symbols.h */
struct kernel_symbol; /* kernel_symbols.c */

/* Zeroed at first. */
struct kernel_symbols {
	bool is_read;
	struct kernel_symbol *list; /* ascending */
	size_t count, capacity;
	char *names; /* terminated, one behind the other */
	size_t names_bytes, names_capacity;
};

/* The two halves of the address space of all supported CPUs. */
static inline bool is_kernel_address(uint64_t address)
{
	return address >> 63;
}

/* "[kernel]" where the name is not known. */
void kernel_symbols_find(struct kernel_symbols *symbols, uint64_t address,
                         struct host_symbol *symbol);
size_t kernel_symbols_held_bytes(const struct kernel_symbols *symbols);
void kernel_symbols_free(struct kernel_symbols *symbols);

#endif
