// SPDX-License-Identifier: MIT
/*
 * Preloaded into any program: when it ends, builds the unwind tables of what it
 * has loaded then, and tells their cost on standard error.
 */
#include <stdio.h>
#include <time.h>

#include "host/unwind_table.h"

static double cpu_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static __attribute__((destructor)) void tell_tables(void)
{
	struct error error;
	double start_ms = cpu_ms();

	if (unwind_tables_refresh(0, UNWIND_NO_BUDGET, &error) < 0)
		fprintf(stderr, "tables: %s\n", error.text);
	else
		fprintf(stderr, "tables of %zu objects: %.1f ms, %zu KiB\n",
		        unwind_tables_enter()->object_count,
		        cpu_ms() - start_ms, unwind_tables_held_bytes() / 1024);
}
