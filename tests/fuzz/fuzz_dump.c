// SPDX-License-Identifier: MIT
/*
 * Fuzz target: any bytes as a dump of either kind, for both readers, with the
 * old parser's names and without, through every output that walks what was
 * read. The symbol table and the extension are read on the way.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "memory/memory_load.h"
#include "memory/memory_stacks.h"
#include "output/memory_output.h"
#include "output/output.h"
#include "profile/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static FILE *nowhere;

static FILE *open_bytes(const uint8_t *bytes, size_t count)
{
	return fmemopen((void *)(uintptr_t)bytes, count, "rb");
}

static void read_sysprof(const uint8_t *bytes, size_t count, bool compat)
{
	const struct load_options options = {.compat = compat,
	                                     .labels = !compat};
	FILE *file = open_bytes(bytes, count);
	struct load_result result;
	struct profile profile;

	profile_load(&profile, file, "fuzz", &options, &result);
	fclose(file);
	output_folded(nowhere, &profile, "fuzz");
	profile_close(&profile);
}

static void read_memprof(const uint8_t *bytes, size_t count, bool compat)
{
	const struct memory_options options = {.compat = compat,
	                                       .traces = !compat};
	const struct memory_output_options show = {.human_readable = compat};
	FILE *file = open_bytes(bytes, count);
	struct memory_profile memory;
	struct profile stacks;

	memory_load(&memory, file, "fuzz", &options);
	fclose(file);
	if (compat)
		memory_output_compat(nowhere, &memory, &show);
	else
		memory_output_tables(nowhere, &memory, &show);
	memory_stacks(&memory, WEIGHT_HELD_BYTES, &stacks);
	output_folded(nowhere, &stacks, "fuzz");
	profile_close(&stacks);
	memory_close(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	if (nowhere == NULL)
		nowhere = fopen("/dev/null", "w");
	if (count == 0)
		return 0;
	/* A symbol table that is whole is followed by one of the streams. */
	for (int compat = 0; compat < 2; compat++) {
		read_sysprof(bytes, count, compat != 0);
		read_memprof(bytes, count, compat != 0);
	}
	return 0;
}
