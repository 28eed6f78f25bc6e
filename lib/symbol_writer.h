// SPDX-License-Identifier: MIT
/*
 * Symbol writer: names of functions into a dump, each before the first record
 * that needs it. Used by the writer thread of a profile; looks into files and
 * allocates.
 */
#ifndef LIB_SYMBOL_WRITER_H
#define LIB_SYMBOL_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "sample.h"
#include "stream/sysprof_write.h"
#include "vm/vm.h"

#define FUNCTION_NAME_BYTES 256

struct symbol_writer; /* symbol_writer.c */

/* What records refer to by Lua symbol id. */
struct lua_symbol_entry {
	uint64_t prototype; /* 0: not known */
	uint32_t first_line;
};

/* The encoder outlives the symbol writer. NULL with the reason in *error. */
struct symbol_writer *symbol_writer_open(struct sysprof_encoder *encoder,
                                         struct error *error);
void symbol_writer_close(struct symbol_writer *symbols);

/* From now on what was written is kept, in bounded memory, so that it can be
 * written once more. */
void symbol_writer_keep(struct symbol_writer *symbols);
/* The encoder is at the head of another dump, which knows no names: each is
 * written when it is needed there, those of traces at once. */
void symbol_writer_begin_dump(struct symbol_writer *symbols);

/* What it holds at most. */
size_t symbol_writer_held_bytes(const struct symbol_writer *symbols);

/* The function that holds the address, unless it was written before. */
void symbol_writer_native(struct symbol_writer *symbols, uint64_t address);

/* function (FUNCTION_NAME_BYTES) gets its name; returns the name's length, 0
 * where it is not known. */
size_t symbol_writer_lua(struct symbol_writer *symbols,
                         const struct lua_symbol *symbol, char *function);
/* Its name is in the dump then. */
struct lua_symbol_entry symbol_writer_find_lua(struct symbol_writer *symbols,
                                               uint64_t id);

void symbol_writer_trace(struct symbol_writer *symbols,
                         const struct trace_symbol *trace);

/* Library functions are few: all are named at the start. */
void symbol_writer_fast(struct symbol_writer *symbols,
                        const struct fast_names *names);

#endif
