// SPDX-License-Identifier: MIT
/*
 * Object symbols: the function symbols of one ELF image, sorted.
 * Read once on the writer thread; reads files and allocates.
 *
 * "Address" here is the image's own virtual address, before the loader moved
 * it.
 */
#ifndef HOST_OBJECT_SYMBOLS_H
#define HOST_OBJECT_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct object_symbols; /* object_symbols.c */

struct object_symbol {
	uint64_t start;
	uint64_t end;     /* first address after it */
	const char *name; /* valid as long as the object_symbols */
};

/*
 * Reads .symtab, or .dynsym where that has no functions. A table that would
 * take more than bytes_max of memory is left out: then no symbol is found, but
 * addresses still are. NULL if it is no ELF file that can be read.
 */
struct object_symbols *object_symbols_read(int fd, size_t bytes_max);
struct object_symbols *
object_symbols_read_image(void *image, size_t image_bytes, size_t bytes_max);
void object_symbols_free(struct object_symbols *symbols);

size_t object_symbols_held_bytes(const struct object_symbols *symbols);

/* Where the loader puts the byte at this offset of the file, if it is code. */
bool object_symbols_address(const struct object_symbols *symbols,
                            uint64_t file_offset, uint64_t *address);

/* The innermost function that holds the address. Of several names for the
 * same bytes a global one is preferred to a weak one to a local one, then the
 * one with fewer leading underscores, then the longer one, as perf does. */
bool object_symbols_find(const struct object_symbols *symbols, uint64_t address,
                         struct object_symbol *symbol);

#endif
