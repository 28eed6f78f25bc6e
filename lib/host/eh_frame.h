// SPDX-License-Identifier: MIT
/*
 * Decoder of .eh_frame (DWARF call frame information) into unwind rows.
 * Works on copies of an object's memory and believes nothing in them.
 * Allocates; not for the signal handler.
 */
#ifndef HOST_EH_FRAME_H
#define HOST_EH_FRAME_H

#include "dwarf_cursor.h"
#include "unwind_rows.h"

/* Where the frame information of all functions lies that the .eh_frame_hdr
 * lists: from *start to the last one's first byte, *last. False for a header
 * that cannot be used. */
bool eh_frame_locate(const struct memory_copy *header, uint64_t *start,
                     uint64_t *last);

/* How many bytes of the frame information start with these four. */
uint64_t eh_frame_entry_bytes(const uint8_t head[4]);

/* Decodes every function that header lists. Row addresses are relative to
 * object_start. NULL if there is none, or *out_of_memory. */
struct unwind_rows *eh_frame_decode(const struct memory_copy *header,
                                    const struct memory_copy *frames,
                                    uint64_t object_start, bool *out_of_memory);

#endif
