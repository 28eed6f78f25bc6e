// SPDX-License-Identifier: MIT
/*
 * Names of native functions in this process, for the writer thread.
 *
 * Reads the symbol tables of the object files (.symtab, else .dynsym) through
 * libelf, and the bounds of functions without a symbol from the unwind tables.
 * Never asks the dynamic loader: its lock may be held by a thread that waits
 * for the writer. Not for the signal handler.
 */
#ifndef HOST_HOST_SYMBOLS_H
#define HOST_HOST_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "../error.h"

#define HOST_SYMBOL_NAME_BYTES 256

struct host_symbols; /* host_symbols.c */

struct host_symbol {
	uint64_t start; /* absolute address of the function, <= address asked */
	uint64_t end;   /* first address after it */
	/* Its symbol. Where it has none, "libc+0x1234": the object's file name
	 * up to ".so", and the function's address in the object by the unwind
	 * tables; "[libc]" where those do not know it either; "[unknown]"
	 * outside of every object. Terminated. */
	char name[HOST_SYMBOL_NAME_BYTES];
};

struct host_symbols *host_symbols_open(struct error *error);
void host_symbols_close(struct host_symbols *symbols);

/* Bounded: an object that does not fit has no symbols. */
size_t host_symbols_held_bytes(const struct host_symbols *symbols);

/* Always fills *symbol; the narrowest truth where nothing better is known. */
void host_symbols_find(struct host_symbols *symbols, uint64_t address,
                       struct host_symbol *symbol);

#endif
