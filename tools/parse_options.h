// SPDX-License-Identifier: MIT
/* What luajit-parse-sysprof is asked to do; doc/luajit-parse-sysprof.1. */
#ifndef TOOLS_PARSE_OPTIONS_H
#define TOOLS_PARSE_OPTIONS_H

#include <regex.h>

#include "output/output.h"
#include "profile/load.h"
#include "profile/select.h"

#define PROGRAM "luajit-parse-sysprof"

struct command {
	char **inputs; /* "-": standard input */
	size_t input_count;
	const char *output; /* NULL: standard output */
	const struct output_format *format;
	bool partial;
	bool compare; /* two inputs, the old and the new one */
	bool follow;
	uint64_t follow_ns; /* between two views */
	double min_percent;
	size_t row_limit; /* of tables; 0: all */
	struct load_options load;
	struct selection selection;
	regex_t include; /* what selection points to */
	regex_t exclude;
	regex_t label;
};

/* Exit code, or -1 to go on. command is zeroed; free it in any case. */
int command_parse(struct command *command, int argc, char **argv);
void command_free(struct command *command);

#endif
