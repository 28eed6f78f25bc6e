// SPDX-License-Identifier: MIT
/*
 * Writes a dump for the scripts that test luajit-parse-sysprof:
 *
 *   write_small_dump small|labelled|hostile|names|folded|lines >FILE
 *
 * "folded" and "lines" write what is expected of the small one.
 */
#include <stdio.h>
#include <string.h>

#include "unit/dump_fixture.h"

static int write_bytes(const void *bytes, size_t count)
{
	return fwrite(bytes, 1, count, stdout) == count && fflush(stdout) == 0
	               ? 0
	               : 1;
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";
	struct memory_dump dump = {0};

	if (strcmp(what, "folded") == 0)
		return write_bytes(small_dump_folded,
		                   strlen(small_dump_folded));
	if (strcmp(what, "lines") == 0)
		return write_bytes(small_dump_folded_lines,
		                   strlen(small_dump_folded_lines));
	if (strcmp(what, "small") == 0) {
		small_dump_write(&dump, 100);
	} else if (strcmp(what, "labelled") == 0) {
		labelled_dump_write(&dump);
	} else if (strcmp(what, "hostile") == 0) {
		hostile_dump_write(&dump);
	} else if (strcmp(what, "names") == 0) {
		strange_names_write(&dump);
	} else {
		fputs("usage: write_small_dump "
		      "small|labelled|hostile|names|folded|lines\n",
		      stderr);
		return 2;
	}
	int code = write_bytes(dump.bytes, dump.count);
	memory_dump_free(&dump);
	return code;
}
