// SPDX-License-Identifier: MIT
/*
 * Decoder of .eh_frame (DWARF call frame information) into unwind rows.
 * Reads the object's mapped memory. Allocates; not for the signal handler.
 */
#ifndef HOST_EH_FRAME_H
#define HOST_EH_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "unwind_table.h"

struct unwind_rows {
	struct unwind_row *rows;
	size_t count;
	size_t capacity;
};

/* Decodes every function that the .eh_frame_hdr at header lists, appending to
 * *rows, ascending; header_bytes is its size. Row addresses are relative to
 * object_start. Returns 0, -1 for a header it cannot use, -2 if memory ran
 * out. */
int eh_frame_decode(const uint8_t *header, size_t header_bytes,
                    uint64_t object_start, struct unwind_rows *rows);

#endif
