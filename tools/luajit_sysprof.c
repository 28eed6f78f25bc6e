// SPDX-License-Identifier: MIT
/*
 * luajit-sysprof: runs its sub-commands. The man page doc/luajit-sysprof.1
 * describes them.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"

#define PROGRAM "luajit-sysprof"

static const struct subcommand {
	const char *name;
	const char *help;
	int (*run)(int argc, char **argv);
} subcommands[] = {
	{"record", "runs a command and profiles its LuaJIT", command_record},
	{"report", "prints the stacks of a dump (sysprof.bin)", command_report},
	{"top", "prints tables of its functions and lines", command_top},
	{"flamegraph", "writes a page for a browser, sysprof.html",
         command_flamegraph},
	{"doctor", "says what keeps perf from seeing Lua, and the remedy",
         command_doctor},
	{"inject", "gives the samples of perf record the Lua stacks of a dump",
         command_inject},
	{"perf-command",
         "sets the probe and prints the perf command for a process",
         command_perf_command},
};

#define SUBCOMMAND_COUNT (sizeof(subcommands) / sizeof(subcommands[0]))

static const char *running_name = "";

void tell(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, PROGRAM "%s%s: ", running_name[0] ? " " : "",
	        running_name);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

int parse_pid(const char *argument)
{
	char *end;
	long pid;

	errno = 0;
	pid = strtol(argument, &end, 10);
	if (errno == 0 && *argument != '\0' && *end == '\0' && pid > 0 &&
	    pid <= INT_MAX)
		return (int)pid;
	tell("expected a process id, got '%.100s' (see --help)", argument);
	return 0;
}

static void print_help(FILE *file)
{
	fputs("Usage: " PROGRAM " COMMAND [ARGUMENT]...\n"
	      "\n",
	      file);
	for (size_t i = 0; i < SUBCOMMAND_COUNT; i++)
		fprintf(file, "  %-14s %s\n", subcommands[i].name,
		        subcommands[i].help);
	fputs("\n"
	      "COMMAND --help tells more.\n"
	      "Exit status: 0 good, 1 bad input or I/O error, 2 wrong usage.\n",
	      file);
}

int main(int argc, char **argv)
{
	static char full_name[64];

	if (argc < 2) {
		print_help(stderr);
		return STATUS_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0) {
		print_help(stdout);
		return STATUS_GOOD;
	}
	if (strcmp(argv[1], "--version") == 0) {
		puts(PROGRAM " (" PACKAGE_NAME ") " PACKAGE_VERSION);
		return STATUS_GOOD;
	}
	for (size_t i = 0; i < SUBCOMMAND_COUNT; i++) {
		if (strcmp(argv[1], subcommands[i].name) != 0)
			continue;
		running_name = subcommands[i].name;
		/* As getopt(3) names it. */
		snprintf(full_name, sizeof(full_name), PROGRAM " %s",
		         running_name);
		argv[1] = full_name;
		return subcommands[i].run(argc - 1, argv + 1);
	}
	tell("unknown command '%.100s' (see --help)", argv[1]);
	return STATUS_USAGE;
}
