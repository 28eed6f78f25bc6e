// SPDX-License-Identifier: MIT
/* The command luajit-parse-memprof; see memprof_command.h. */
#include "memprof_command.h"

#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/memory_load.h"
#include "memory/memory_stacks.h"
#include "output/memory_output.h"
#include "output/output.h"
#include "parser_command.h"

#define PROGRAM "luajit-parse-memprof"

const char parser_name[] = PROGRAM;

enum format_kind {
	FORMAT_TABLES,
	FORMAT_COMPAT,
	FORMAT_STACKS, /* one of output.h */
};

struct format {
	const char *name; /* as in --format=NAME */
	const char *help;
	enum format_kind kind;
	void (*write_stacks)(FILE *file, const struct profile *profile,
	                     const char *title);
};

/* The first one is the default. */
static const struct format formats[] = {
	{"tables", "what is held, and events by location", FORMAT_TABLES, NULL},
	{"compat", "as the parser of Tarantool's LuaJIT", FORMAT_COMPAT, NULL},
	{"folded", "folded stacks, for flame graph tools", FORMAT_STACKS,
         output_folded},
	{"html", "flame graph that opens in a browser", FORMAT_STACKS,
         output_html},
	{"svg", "flame graph as a picture", FORMAT_STACKS, output_svg},
};

#define FORMAT_COUNT (sizeof(formats) / sizeof(formats[0]))

static const char *const weight_names[] = {
	[WEIGHT_ALLOC_BYTES] = "bytes",
	[WEIGHT_ALLOC_COUNT] = "count",
	[WEIGHT_HELD_BYTES] = "held",
};

#define WEIGHT_COUNT (sizeof(weight_names) / sizeof(weight_names[0]))

struct command {
	const char *input;  /* "-": standard input */
	const char *output; /* NULL: standard output */
	const struct format *format;
	enum memory_weight weight;
	bool has_weight;
	bool partial;
	struct memory_options load;
	struct memory_output_options show;
};

enum option_value {
	OPTION_FORMAT = 256,
	OPTION_COMPAT,
	OPTION_WEIGHT,
	OPTION_LEAK_ONLY,
	OPTION_HUMAN_READABLE,
	OPTION_TRACES,
	OPTION_PARTIAL,
	OPTION_HELP,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{"format", required_argument, NULL, OPTION_FORMAT},
	{"compat", no_argument, NULL, OPTION_COMPAT},
	{"weight", required_argument, NULL, OPTION_WEIGHT},
	{"leak-only", no_argument, NULL, OPTION_LEAK_ONLY},
	{"human-readable", no_argument, NULL, OPTION_HUMAN_READABLE},
	{"traces", no_argument, NULL, OPTION_TRACES},
	{"output", required_argument, NULL, 'o'},
	{"partial", no_argument, NULL, OPTION_PARTIAL},
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0},
};

/* ---- options ----------------------------------------------------------------- */

static void print_help(void)
{
	fputs("Usage: " PROGRAM " [OPTION]... FILE\n"
	      "Prints which lines hold the memory, of a profile that "
	      "misc.memprof wrote.\n"
	      "FILE - is standard input.\n"
	      "\n"
	      "  --leak-only       only what is held at the end\n"
	      "  --human-readable  sizes in KiB, MiB, GiB\n"
	      "  --traces          tell apart what ran in which trace\n"
	      "  --format=NAME     one of:\n",
	      stdout);
	for (size_t i = 0; i < FORMAT_COUNT; i++)
		printf("                      %-8s %s%s\n", formats[i].name,
		       formats[i].help, i == 0 ? " (default)" : "");
	fputs("  --weight=NAME     what flame graphs and folded stacks count: "
	      "bytes allocated\n"
	      "                    (default), count of allocations, bytes "
	      "held at the end\n"
	      "  --compat          same as --format=compat\n"
	      "  -o, --output=FILE write to FILE, not to standard output\n"
	      "  --partial         print what can be read of a damaged dump\n"
	      "  --help            print this and exit\n"
	      "  --version         print the version and exit\n"
	      "\n"
	      "Exit status: 0 good, 1 bad input or I/O error, 2 wrong usage.\n",
	      stdout);
}

/* Exit code, or -1 to go on. */
static int take_format(struct command *command, const char *name)
{
	for (size_t i = 0; i < FORMAT_COUNT; i++) {
		if (strcmp(formats[i].name, name) != 0)
			continue;
		command->format = &formats[i];
		return -1;
	}
	return usage_error("--format: got '%.100s', expected one of tables, "
	                   "compat, folded, html, svg",
	                   name);
}

static int take_weight(struct command *command, const char *name)
{
	for (size_t i = 0; i < WEIGHT_COUNT; i++) {
		if (strcmp(weight_names[i], name) != 0)
			continue;
		command->weight = (enum memory_weight)i;
		command->has_weight = true;
		return -1;
	}
	return usage_error("--weight: got '%.100s', expected one of bytes, "
	                   "count, held",
	                   name);
}

static int take_option(struct command *command, int option)
{
	switch (option) {
	case OPTION_FORMAT:
		return take_format(command, optarg);
	case OPTION_COMPAT:
		return take_format(command, "compat");
	case OPTION_WEIGHT:
		return take_weight(command, optarg);
	case OPTION_LEAK_ONLY:
		command->show.leak_only = true;
		return -1;
	case OPTION_HUMAN_READABLE:
		command->show.human_readable = true;
		return -1;
	case OPTION_TRACES:
		command->load.traces = true;
		return -1;
	case 'o':
		command->output = optarg;
		return -1;
	case OPTION_PARTIAL:
		command->partial = true;
		return -1;
	case OPTION_HELP:
		print_help();
		return EXIT_GOOD;
	case OPTION_VERSION:
		puts(PROGRAM " (" PACKAGE_NAME ") " PACKAGE_VERSION);
		return EXIT_GOOD;
	}
	say("see --help"); /* getopt has told what is wrong */
	return EXIT_USAGE;
}

static int check_options(struct command *command)
{
	bool has_stacks = command->format->kind == FORMAT_STACKS;

	command->load.compat = command->format->kind == FORMAT_COMPAT;
	if (command->load.compat && command->load.traces)
		return usage_error("the compat format does not take --traces");
	if (!has_stacks && command->has_weight)
		return usage_error("--weight is for the formats folded, html "
		                   "and svg");
	if (!has_stacks ||
	    (!command->show.human_readable && !command->load.traces))
		return -1;
	return usage_error("the format %s takes neither --human-readable nor "
	                   "--traces",
	                   command->format->name);
}

static int parse_command(struct command *command, int argc, char **argv)
{
	int option;

	optind = 0; /* the Lua module may have read other options before */
	while ((option = getopt_long(argc, argv, "o:", long_options, NULL)) !=
	       -1) {
		int code = take_option(command, option);

		if (code >= 0)
			return code;
	}
	if (optind == argc)
		return usage_error("expected the FILE of a dump, got none");
	if (optind + 1 < argc)
		return usage_error("expected one FILE, got '%.100s' and "
		                   "'%.100s'",
		                   argv[optind], argv[optind + 1]);
	command->input = argv[optind];
	/* What leaks is what is held. */
	if (command->show.leak_only && !command->has_weight)
		command->weight = WEIGHT_HELD_BYTES;
	return check_options(command);
}

/* ---- what the output does not show ---------------------------------------------- */

static void tell_lost(const struct memory_profile *memory)
{
	const struct profile *profile = &memory->profile;
	uint64_t lost = memory_lost_count(memory);

	if (lost == 0)
		return;
	say("lost %llu of %llu events, so balances may be wrong:",
	    (unsigned long long)lost,
	    (unsigned long long)(lost + memory->allocations.event_count));
	for (size_t i = 0; i < PROFILE_LOST_REASONS; i++)
		if (profile->lost[i] > 0)
			say("  %s: %llu", memprof_lost_name(i),
			    (unsigned long long)profile->lost[i]);
}

static void tell_damage(const struct command *command,
                        const struct memory_profile *memory)
{
	say("%s", memory->error);
	say("%llu events can be read up to there; what was freed later counts "
	    "as held%s",
	    (unsigned long long)memory->allocations.event_count,
	    command->partial ? "" : "; --partial prints them");
}

static void tell_session(const struct command *command,
                         const struct memory_profile *memory)
{
	const struct memory_session *session = &memory->session;

	if (memory->complete && session->ended &&
	    session->event_count != memory->allocations.event_count)
		say("the profiler counted %llu events, the dump has %llu",
		    (unsigned long long)session->event_count,
		    (unsigned long long)memory->allocations.event_count);
	if (session->sample_bytes > 0 && !command->load.compat)
		say("estimates from %llu events, one each %llu bytes on "
		    "average",
		    (unsigned long long)memory->allocations.event_count,
		    (unsigned long long)session->sample_bytes);
	if (command->format->kind == FORMAT_STACKS && !session->stacks)
		say("the dump has no stacks: each location stands alone; "
		    "misc.memprof.start { stacks = true } records them");
}

/* ---- input and output ---------------------------------------------------------- */

static void write_format(const struct command *command,
                         struct memory_profile *memory, FILE *file)
{
	struct profile stacks;

	switch (command->format->kind) {
	case FORMAT_TABLES:
		memory_output_tables(file, memory, &command->show);
		break;
	case FORMAT_COMPAT:
		memory_output_compat(file, memory, &command->show);
		break;
	case FORMAT_STACKS:
		memory_stacks(memory, command->weight, &stacks);
		command->format->write_stacks(file, &stacks, command->input);
		profile_close(&stacks);
		break;
	}
}

static int write_output(const struct command *command,
                        struct memory_profile *memory)
{
	FILE *file = open_output(command->output);

	if (file == NULL)
		return EXIT_BAD_INPUT;
	write_format(command, memory, file);
	return close_output(file, command->output, 0);
}

static int print_memory(const struct command *command,
                        struct memory_profile *memory)
{
	if (!memory->complete)
		tell_damage(command, memory);
	tell_lost(memory);
	if (!memory->complete && !command->partial)
		return EXIT_BAD_INPUT;
	if (memory->has_trailing)
		say("%s: ignored what follows the end record", command->input);
	tell_session(command, memory);
	return write_output(command, memory);
}

static int run(const struct command *command)
{
	bool is_stdin = strcmp(command->input, "-") == 0;
	FILE *file = is_stdin ? stdin : fopen(command->input, "rbe");
	struct memory_profile memory;
	int code;

	if (file == NULL) {
		say("cannot open %s: %s", command->input, strerror(errno));
		return EXIT_BAD_INPUT;
	}
	memory_load(&memory, file, is_stdin ? "standard input" : command->input,
	            &command->load);
	if (!is_stdin)
		fclose(file);
	code = print_memory(command, &memory);
	memory_close(&memory);
	return code;
}

int memprof_command(int argc, char **argv)
{
	struct command command = {.format = formats};
	int code = parse_command(&command, argc, argv);

	return code >= 0 ? code : run(&command);
}
