// SPDX-License-Identifier: MIT
/*
 * Fuzz target: any bytes as a sysprof dump, with every question and through
 * every output. The last two bytes choose among them, the rest is the dump.
 */
#include <regex.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "output/output.h"
#include "profile/load.h"
#include "profile/select.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static FILE *nowhere;
static regex_t regex;

static void open_once(void)
{
	if (nowhere != NULL)
		return;
	nowhere = fopen("/dev/null", "w");
	regcomp(&regex, "a|o", REG_EXTENDED | REG_NOSUB);
}

/* Those that write files of their own are left out. */
static const struct output_format *choose_format(uint8_t choice)
{
	const struct output_format *good[32];
	size_t count = 0;

	for (const struct output_format *format = output_formats;
	     format->name != NULL; format++)
		if (format->write != NULL &&
		    strncmp(format->name, "perf", 4) != 0)
			good[count++] = format;
	return good[choice % count];
}

static struct selection choose_selection(uint8_t choice, unsigned wants)
{
	struct selection selection = {
		.lines = (enum select_lines)(choice & 3),
		.side = (enum select_side)((choice >> 2 & 3) % 3),
	};

	if (choice & 0x10)
		selection.include = &regex;
	if (choice & 0x20)
		selection.prune_percent = 20;
	if (choice & 0x40) {
		selection.groups[0] = GROUP_STATE;
		selection.groups[1] = GROUP_COROUTINE;
		selection.groups[2] = GROUP_PROCESS;
		selection.groups[3] = GROUP_LABEL;
		selection.group_count = 4;
	}
	if (choice & 0x80)
		selection.root = "main";
	if ((wants & OUTPUT_WANTS_LINES) != 0)
		selection.lines = LINES_KEEP;
	return selection;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	struct profile profile;
	struct profile selected;
	struct load_result result;

	open_once();
	if (count < 3)
		return 0;

	const struct output_format *format = choose_format(bytes[count - 1]);
	struct selection selection =
		choose_selection(bytes[count - 2], format->wants);
	struct load_options options = {
		.compat = strcmp(format->name, "compat") == 0,
		.labels = true,
		.moments = (format->wants & OUTPUT_WANTS_MOMENTS) != 0,
	};
	FILE *file = fmemopen((void *)(uintptr_t)bytes, count - 2, "rb");

	profile_load(&profile, file, "fuzz", &options, &result);
	fclose(file);
	profile_select(&selected, &profile, &selection);
	format->write(nowhere, &selected, "fuzz");
	profile_close(&selected);
	profile_close(&profile);
	return 0;
}
