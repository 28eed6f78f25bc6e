// SPDX-License-Identifier: MIT
/*
 * Lua symbols: mapping the memory that lua_symbols_sig.c works on.
 */
#include "lua_symbols_sig.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "lmisclib.h"

struct lua_symbols *lua_symbols_open(struct ring *ring,
                                     struct address_arena *arena,
                                     _Atomic uint32_t *last_id,
                                     struct error *error)
{
	/* Touched only as far as it is used. */
	struct lua_symbols *symbols =
		mmap(NULL, sizeof(*symbols), PROT_READ | PROT_WRITE,
	             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (symbols == MAP_FAILED) {
		error_set(error, PROFILE_ERRMEM, errno,
		          "out of memory for the table of Lua functions: %s",
		          strerror(errno));
		return NULL;
	}
	madvise(symbols, sizeof(*symbols), MADV_DONTFORK);
	symbols->ring = ring;
	symbols->last_id = last_id;
	symbols->arena = arena;
	return symbols;
}

void lua_symbols_close(struct lua_symbols *symbols)
{
	if (symbols)
		munmap(symbols, sizeof(*symbols));
}
