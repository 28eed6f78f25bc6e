// SPDX-License-Identifier: MIT
/*
 * The table of labels, for labels.c (setting them) and labels_sig.c (reading
 * them) only.
 */
#ifndef LIB_LABELS_STATE_H
#define LIB_LABELS_STATE_H

#include <stdatomic.h>
#include <stdint.h>

#include "labels_sig.h"

/* Powers of two; three quarters of each can be used. */
#define LABELLED_MAX    (1u << 16)
#define LABEL_TEXTS_MAX (1u << 14)

/* A coroutine and its label. An entry whose label is taken away keeps its
 * coroutine while searches have to go on behind it, or until another takes it
 * over. */
struct labelled {
	_Atomic uint64_t coroutine; /* address, 0: never used */
	_Atomic uint32_t label;     /* 0: none */
	_Atomic uint64_t witness;   /* of the label */
	uint64_t serial;
};

struct labels {
	uint32_t used_count; /* entries that are not 0 */
	uint32_t text_count;
	uint64_t last_serial;
	struct labelled coroutines[LABELLED_MAX];
	/* Numbers of labels by the hash of their text, 0: free. */
	uint32_t by_text[LABEL_TEXTS_MAX];
	char texts[LABEL_TEXTS_MAX][LABEL_BYTES_MAX + 1]; /* by number */
};

/* NULL until the first label. Never unmapped: a handler may be reading. */
extern struct labels *_Atomic labels_published;

static inline uint32_t labels_slot(uint64_t coroutine)
{
	return (uint32_t)((coroutine >> 4) * UINT64_C(0x9e3779b97f4a7c15) >>
	                  48) %
	       LABELLED_MAX;
}

#endif
