// SPDX-License-Identifier: MIT
/* Memory of the tools; see memory.h. */
#include "memory.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void end_program(void)
{
	fprintf(stderr, "%s: out of memory\n", program_invocation_short_name);
	exit(1);
}

static __thread void (*failure_handler)(void) = end_program;

void memory_on_failure(void (*handler)(void))
{
	failure_handler = handler != NULL ? handler : end_program;
}

void memory_exhausted(void)
{
	failure_handler();
	end_program(); /* a handler that returns has broken its promise */
	exit(1);
}

static void *check(void *memory)
{
	if (memory == NULL)
		memory_exhausted();
	return memory;
}

void *memory_grow(void *array, size_t *capacity, size_t needed,
                  size_t element_bytes)
{
	if (needed <= *capacity)
		return array;

	size_t count = *capacity < 16 ? 16 : *capacity * 2;
	if (count < needed)
		count = needed;
	if (count > SIZE_MAX / element_bytes)
		memory_exhausted();
	*capacity = count;
	return check(realloc(array, count * element_bytes));
}

void *memory_zeroed(size_t count, size_t element_bytes)
{
	return check(calloc(count > 0 ? count : 1, element_bytes));
}

char *memory_copy(const char *bytes, size_t count)
{
	char *copy = check(malloc(count + 1));

	if (count > 0)
		memcpy(copy, bytes, count);
	copy[count] = '\0';
	return copy;
}

char *memory_copy_string(const char *string)
{
	return memory_copy(string, string != NULL ? strlen(string) : 0);
}
