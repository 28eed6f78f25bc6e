// SPDX-License-Identifier: MIT
/*
 * Names of frames: the one spelling that map files, dumps and all outputs use.
 * Used by the profiled process (writer thread) and by the tools. Allocates
 * nothing; not for the signal handler.
 *
 *   Lua function      name file.lua:12, or function file.lua:12
 *   main chunk        main file.lua:0
 *   with its line     name file.lua:12 line 15
 *   built in the VM   foreach builtin
 *   source text       function [string return f\x28x\x29]:1
 *   trace             TRACE_17 file.lua:30
 *   native            the symbol
 *   something missing [truncated], or [truncated: 1800 frames]
 *
 * Every name is at least 3 bytes of valid UTF-8 and survives folded stacks,
 * perf's map files, stackcollapse-perf and the known importers:
 *   - control bytes, bytes that are not UTF-8, `;`, `(`, `)`, quotes and
 *     the `>` of `->` are spelled \xNN, and so is a space at either end;
 *   - the `+` of an ending `+0x…`, which importers strip as an offset, becomes
 *     a space, and an ending `_[k]`, an annotation, `_\x5bk]`;
 *   - names over FRAME_NAME_TEXT_MAX bytes are shortened: paths keep their
 *     end, all else the beginning, with `...` for what is missing;
 *   - names of 1 or 2 bytes stand in brackets, an empty one is [no name].
 * Doing it twice changes nothing.
 */
#ifndef STREAM_FRAME_NAME_H
#define STREAM_FRAME_NAME_H

#include <stddef.h>
#include <stdint.h>

#include "sysprof_format.h"

#define FRAME_NAME_TEXT_MAX 200 /* of a symbol, a path, or a function name */
#define FRAME_NAME_BYTES    512 /* room that is enough for every name */

/*
 * All write a terminated name to name, which has FRAME_NAME_BYTES bytes, and
 * return its length.
 */

/* chunk is the raw chunk name. first_line as in a dump: 2^32-1 and 2^64-1 are
 * functions built in the VM. function may be empty. */
size_t frame_name_lua(char *name, const char *chunk, size_t chunk_bytes,
                      uint64_t first_line, const char *function,
                      size_t function_bytes);
/* The same with the line that runs; line 0 (not known) leaves it out. */
size_t frame_name_lua_line(char *name, const char *chunk, size_t chunk_bytes,
                           uint64_t first_line, const char *function,
                           size_t function_bytes, uint64_t line);
/* line: where the trace starts. chunk_bytes 0: not known. */
size_t frame_name_trace(char *name, uint64_t trace_number, const char *chunk,
                        size_t chunk_bytes, uint64_t line);
/* The file, label or source text of a chunk alone, as it is in those names. */
size_t frame_name_source(char *name, const char *chunk, size_t chunk_bytes);
/* Symbol of native code, or the name of a library function. */
size_t frame_name_native(char *name, const char *symbol, size_t symbol_bytes);
/* An address without a symbol: "0x7f0012345678". */
size_t frame_name_address(char *name, uint64_t address);
/* marker: enum frame_marker, or any other number. count 0 leaves the number of
 * frames out: so do map files and stacks, where samples that lack more or fewer
 * frames are one. */
size_t frame_marker_name(char *name, uint64_t marker, uint64_t count);
/* "BC_TGETS". number: that of a node, VM_PART_BASE included. */
size_t frame_name_vm_part(char *name, uint64_t number);

/* Never NULL: "unknown reason" and "unknown state" for other numbers. */
const char *lost_reason_name(uint64_t reason);
const char *sample_state_name(uint64_t state);

#endif
