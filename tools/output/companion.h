// SPDX-License-Identifier: MIT
/*
 * Companion: an object file that lies beside a perf.data, so that perf has
 * names and lines for addresses that stand for functions. It holds a symbol for
 * each function, a line table and a build id; its code is all nops.
 */
#ifndef OUTPUT_COMPANION_H
#define OUTPUT_COMPANION_H

#include <stddef.h>
#include <stdint.h>

#define COMPANION_BUILD_ID_BYTES 20
/* Offset of the code in the file, and its address. */
#define COMPANION_CODE_OFFSET 0x1000

struct companion_symbol {
	const char *name;
	uint64_t offset; /* of the function in the code */
	uint64_t bytes;
};

/* From this byte of the code on. */
struct companion_line {
	uint64_t offset;
	const char *file; /* "": none */
	uint32_t line;    /* 0: none */
};

struct companion {
	const struct companion_symbol *symbols; /* ascending */
	size_t symbol_count;
	const struct companion_line *lines; /* ascending */
	size_t line_count;
	uint64_t code_bytes;
};

/* Writes the file, and what tells it from others to build_id. Returns 0 or a
 * negative errno. */
int companion_write(const struct companion *companion, const char *path,
                    uint8_t build_id[COMPANION_BUILD_ID_BYTES]);

#endif
