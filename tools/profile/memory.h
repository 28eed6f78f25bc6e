// SPDX-License-Identifier: MIT
/*
 * Memory of the tools: without it they cannot go on, so a request that fails
 * ends the program with a message. Never used in lib/.
 */
#ifndef PROFILE_MEMORY_H
#define PROFILE_MEMORY_H

#include <stddef.h>

/* Array of at least needed elements; grows by doubling, keeps the contents. */
void *memory_grow(void *array, size_t *capacity, size_t needed,
                  size_t element_bytes);
void *memory_zeroed(size_t count, size_t element_bytes);
/* A copy with a NUL behind it. */
char *memory_copy(const char *bytes, size_t count);
/* NULL is copied as the empty string. */
char *memory_copy_string(const char *string);

#endif
