// SPDX-License-Identifier: MIT
/* Demangling by libiberty, which perf uses, too; see demangle.h. */
#include "demangle.h"

#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>

/* "::h" and 16 hexadecimal digits end the names of older Rust compilers. */
#define RUST_HASH_BYTES 19

static void cut_rust_hash(char *name)
{
	size_t length = strlen(name);
	char *hash;

	if (length <= RUST_HASH_BYTES)
		return;
	hash = name + length - RUST_HASH_BYTES;
	if (strncmp(hash, "::h", 3) == 0 &&
	    strspn(hash + 3, "0123456789abcdef") == RUST_HASH_BYTES - 3)
		*hash = '\0';
}

char *demangle(const char *symbol)
{
	char *name;

	if (strncmp(symbol, "_Z", 2) != 0 && strncmp(symbol, "_R", 2) != 0)
		return NULL;
	name = cplus_demangle(symbol, DMGL_AUTO);
	if (name != NULL)
		cut_rust_hash(name);
	return name;
}
