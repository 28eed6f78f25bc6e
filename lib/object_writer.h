// SPDX-License-Identifier: MIT
/*
 * Object writer: tells in the stream which objects are mapped where, so that
 * names and lines can be looked up in their files later, also elsewhere. Runs
 * on the writer thread.
 */
#ifndef LIB_OBJECT_WRITER_H
#define LIB_OBJECT_WRITER_H

#include "host/mappings.h"
#include "stream/sysprof_write.h"

/* Zeroed at first. */
struct object_writer {
	struct mappings written; /* what the stream knows */
};

/* Writes what is mapped now and was not at the last call. On failure nothing is
 * written: names of functions are in the stream anyway. */
void object_writer_update(struct object_writer *writer,
                          struct sysprof_encoder *encoder);
void object_writer_close(struct object_writer *writer);

#endif
