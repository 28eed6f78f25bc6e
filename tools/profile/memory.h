// SPDX-License-Identifier: MIT
/*
 * Memory of the tools: without it they cannot go on, so a request that fails
 * ends the program with a message, or does what the caller has asked for. Never
 * used in lib/.
 */
#ifndef PROFILE_MEMORY_H
#define PROFILE_MEMORY_H

#include <stddef.h>

/* What to do on this thread instead: it must not return. NULL: the default. */
void memory_on_failure(void (*handler)(void));

/* Does it: what these functions do when memory is out. */
void memory_exhausted(void) __attribute__((noreturn));

/* Array of at least needed elements; grows by doubling, keeps the contents. */
void *memory_grow(void *array, size_t *capacity, size_t needed,
                  size_t element_bytes);
void *memory_zeroed(size_t count, size_t element_bytes);
/* A copy with a NUL behind it. */
char *memory_copy(const char *bytes, size_t count);
/* NULL is copied as the empty string. */
char *memory_copy_string(const char *string);

#endif
