// SPDX-License-Identifier: MIT
/*
 * Items of the extension while they are written: shared by the encoders of
 * both kinds of dump (sysprof_write.c, memprof_write.c), used by nobody else.
 */
#ifndef STREAM_EXTENSION_WRITE_H
#define STREAM_EXTENSION_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "sysprof_write.h"

/* Largest item: a session, with three strings of the greatest length. */
#define EXTENSION_BODY_BYTES_MAX                                               \
	(3 * (EXTENSION_STRING_BYTES_MAX + NUMBER_BYTES_MAX) +                 \
	 8 * NUMBER_BYTES_MAX)

/* Body of one item under construction; used must be 0 at first. */
struct extension_body {
	size_t used;
	uint8_t bytes[EXTENSION_BODY_BYTES_MAX];
};

void extension_item_number(struct extension_body *item, uint64_t number);
/* Cut to EXTENSION_STRING_BYTES_MAX. */
void extension_item_string(struct extension_body *item, const char *string,
                           size_t bytes);

/* Collects the item; it goes out before the next record of another kind. */
void extension_put(struct sysprof_encoder *encoder, enum extension_item kind,
                   const struct extension_body *item);
/* Writes the collected items, if any. */
void extension_flush(struct sysprof_encoder *encoder);

/* 32-bit lines are signed in the VM and widened to 64 bits on the wire. */
uint64_t wire_line(uint32_t line);

#endif
