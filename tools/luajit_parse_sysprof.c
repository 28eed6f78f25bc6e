// SPDX-License-Identifier: MIT
/*
 * luajit-parse-sysprof: reads a dump, writes its stacks in one of the formats
 * of tools/output. The man page doc/luajit-parse-sysprof.1 describes it.
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/output.h"
#include "profile/load.h"
#include "stream/frame_name.h"

#define PROGRAM "luajit-parse-sysprof"

enum exit_code {
	EXIT_GOOD = 0,
	EXIT_BAD_INPUT = 1, /* also I/O errors */
	EXIT_USAGE = 2,
};

struct command {
	const char *input;  /* "-": standard input */
	const char *output; /* NULL: standard output */
	const struct output_format *format;
	bool partial;
	struct load_options load;
};

enum option_value {
	OPTION_FORMAT = 256,
	OPTION_COMPAT,
	OPTION_LINES,
	OPTION_HOST_ADDRESSES,
	OPTION_PARTIAL,
	OPTION_HELP,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{"format", required_argument, NULL, OPTION_FORMAT},
	{"compat", no_argument, NULL, OPTION_COMPAT},
	{"output", required_argument, NULL, 'o'},
	{"lines", no_argument, NULL, OPTION_LINES},
	{"host-addresses", no_argument, NULL, OPTION_HOST_ADDRESSES},
	{"partial", no_argument, NULL, OPTION_PARTIAL},
	{"help", no_argument, NULL, OPTION_HELP},
	{"version", no_argument, NULL, OPTION_VERSION},
	{NULL, 0, NULL, 0},
};

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
	va_list arguments;

	fputs(PROGRAM ": ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

/* ---- options ----------------------------------------------------------- */

static void print_help(void)
{
	fputs("Usage: " PROGRAM " [OPTION]... FILE\n"
	      "Prints the stacks of a profile that misc.sysprof wrote. FILE - "
	      "is standard input.\n"
	      "\n"
	      "  --format=NAME     one of:\n",
	      stdout);
	for (const struct output_format *format = output_formats; format->name;
	     format++)
		printf("                      %-8s %s%s\n", format->name,
		       format->help,
		       format == output_formats ? " (default)" : "");
	fputs("  --compat          same as --format=compat\n"
	      "  -o, --output=FILE write to FILE, not to standard output\n"
	      "  --lines           tell Lua frames apart by the line that "
	      "runs\n"
	      "  --host-addresses  print native frames as addresses\n"
	      "  --partial         print what can be read of a damaged dump\n"
	      "  --help            print this and exit\n"
	      "  --version         print the version and exit\n"
	      "\n"
	      "Exit status: 0 good, 1 bad input or I/O error, 2 wrong usage.\n",
	      stdout);
}

static int usage_error(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

static int usage_error(const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	say("%s (see --help)", text);
	return EXIT_USAGE;
}

static int unknown_format(const char *name)
{
	char known[256] = "";

	for (const struct output_format *format = output_formats; format->name;
	     format++) {
		strcat(known, format == output_formats ? "" : ", ");
		strcat(known, format->name);
	}
	return usage_error("--format: got '%.100s', expected one of %s", name,
	                   known);
}

/* Exit code, or -1 to go on. */
static int take_option(struct command *command, int option)
{
	switch (option) {
	case OPTION_FORMAT:
		command->format = output_find(optarg);
		return command->format ? -1 : unknown_format(optarg);
	case OPTION_COMPAT:
		command->format = output_find("compat");
		return -1;
	case 'o':
		command->output = optarg;
		return -1;
	case OPTION_LINES:
		command->load.lines = true;
		return -1;
	case OPTION_HOST_ADDRESSES:
		command->load.host_addresses = true;
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

static int parse_command(struct command *command, int argc, char **argv)
{
	int option;

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
	command->load.compat = command->format == output_find("compat");
	if (command->load.compat &&
	    (command->load.lines || command->load.host_addresses))
		return usage_error("the compat format takes neither --lines "
		                   "nor --host-addresses");
	return -1;
}

/* ---- what the output does not show ------------------------------------- */

static void tell_lost(const struct profile *profile)
{
	uint64_t lost = profile_lost_count(profile);

	if (lost == 0)
		return;
	say("lost %llu of %llu samples:", (unsigned long long)lost,
	    (unsigned long long)(lost + profile->sample_count));
	for (size_t i = 0; i < PROFILE_LOST_REASONS; i++)
		if (profile->lost[i] > 0)
			say("  %s: %llu", lost_reason_name(i),
			    (unsigned long long)profile->lost[i]);
}

static void tell_gaps(const struct profile_gaps *gaps)
{
	if (gaps->joined_count > 0)
		say("%llu samples have two stacks and do not say how they "
		    "belong together: joined where both name the same C "
		    "function",
		    (unsigned long long)gaps->joined_count);
	if (gaps->unplaced_count > 0)
		say("%llu C functions of Lua stacks are not on the native "
		    "stack: their place is a guess",
		    (unsigned long long)gaps->unplaced_count);
	if (gaps->no_guest_count > 0)
		say("%llu samples have no Lua stack: the format has none for "
		    "their VM states",
		    (unsigned long long)gaps->no_guest_count);
	if (gaps->trace_count > 0)
		say("%llu samples in traces have no stack: only the function "
		    "is known in which the trace starts",
		    (unsigned long long)gaps->trace_count);
}

static void tell_session(const struct profile *profile)
{
	const struct profile_session *session = &profile->session;
	uint64_t marked = profile_marked_count(profile);

	if (marked > 0)
		say("%llu samples have a stack that is not whole: names in "
		    "square brackets say why",
		    (unsigned long long)marked);
	if (session->ended && session->sample_count != profile->sample_count)
		say("the profiler counted %llu samples, the dump has %llu",
		    (unsigned long long)session->sample_count,
		    (unsigned long long)profile->sample_count);
}

static void tell_damage(const struct command *command,
                        const struct profile *profile,
                        const struct load_result *result)
{
	say("%s", result->error);
	say("%llu samples can be read up to there%s",
	    (unsigned long long)profile->sample_count,
	    command->partial ? "" : "; --partial prints them");
}

/* ---- input and output -------------------------------------------------- */

static int write_output(const struct command *command,
                        const struct profile *profile)
{
	const char *title = strcmp(command->input, "-") == 0 ? "standard input"
	                                                     : command->input;
	FILE *file = command->output ? fopen(command->output, "we") : stdout;

	if (file == NULL) {
		say("cannot write %s: %s", command->output, strerror(errno));
		return EXIT_BAD_INPUT;
	}
	command->format->write(file, profile, title);

	bool failed = ferror(file) != 0;
	if (file == stdout)
		failed |= fflush(file) != 0;
	else
		failed |= fclose(file) != 0;
	if (!failed)
		return EXIT_GOOD;
	say("cannot write %s: %s",
	    command->output ? command->output : "standard output",
	    strerror(errno));
	return EXIT_BAD_INPUT;
}

static int print_profile(const struct command *command,
                         const struct profile *profile,
                         const struct load_result *result)
{
	if (!result->complete)
		tell_damage(command, profile, result);
	tell_lost(profile);
	if (!result->complete && !command->partial)
		return EXIT_BAD_INPUT;
	if (result->has_trailing)
		say("%s: ignored what follows the end record", command->input);
	if (!command->load.compat)
		tell_gaps(&profile->gaps);
	if (result->complete)
		tell_session(profile);
	return write_output(command, profile);
}

static int run(const struct command *command)
{
	bool is_stdin = strcmp(command->input, "-") == 0;
	FILE *file = is_stdin ? stdin : fopen(command->input, "rbe");
	struct profile profile;
	struct load_result result;

	if (file == NULL) {
		say("cannot open %s: %s", command->input, strerror(errno));
		return EXIT_BAD_INPUT;
	}
	profile_load(&profile, file,
	             is_stdin ? "standard input" : command->input,
	             &command->load, &result);
	if (!is_stdin)
		fclose(file);

	int code = print_profile(command, &profile, &result);
	profile_close(&profile);
	return code;
}

int main(int argc, char **argv)
{
	struct command command = {.format = output_formats};
	int code = parse_command(&command, argc, argv);

	return code >= 0 ? code : run(&command);
}
