// SPDX-License-Identifier: MIT
/*
 * Labels: what a program says of its coroutines, as the route of the request
 * that one serves. One table for the process.
 *
 * Set from ordinary code on any thread, read by the signal handlers. Until the
 * first label is set there is no table, and no cost.
 */
#ifndef LIB_LABELS_SIG_H
#define LIB_LABELS_SIG_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

/* Longer texts are cut. */
#define LABEL_BYTES_MAX 127

/* Number of a coroutine's label, 0 if it has none. Numbers of equal texts are
 * equal, and stay what they are. It was given to the coroutine that *witness
 * tells of, if another one has its address by now. Async-signal-safe. */
uint32_t labels_find(uint64_t coroutine, uint64_t *witness);

/* Labels the coroutine at an address, in place of what it had. The witness is
 * of the caller's making: there as long as the label, and no longer true when the
 * coroutine was collected. *serial tells this label from later ones of the same
 * coroutine, or of another one that got its address. */
int labels_set(uint64_t coroutine, uint64_t witness, const char *text,
               size_t bytes, uint64_t *serial, struct error *error);

/* Takes the label away; with a serial other than 0 only if that one is still
 * in force. */
void labels_clear(uint64_t coroutine, uint64_t serial);

/* The text of a label, terminated; "" for 0. */
const char *labels_text(uint32_t label);

#endif
