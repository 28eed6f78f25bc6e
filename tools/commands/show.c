// SPDX-License-Identifier: MIT
/*
 * luajit-sysprof report, top and flamegraph: a dump by luajit-parse-sysprof, which
 * they become, in the format that the word asks for.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"

#define PARSER    "luajit-parse-sysprof"
#define DUMP      "sysprof.bin"
#define ADDED_MAX 4

static int refuse(void)
{
	tell(PARSER ": %s", strerror(errno));
	return STATUS_BAD;
}

/* The parser beside this program, else the one in the PATH. */
static int become_parser(char **arguments)
{
	char path[PATH_MAX] = "";
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (length > 0 && length < PATH_MAX - (ssize_t)sizeof(PARSER) - 1) {
		dirname(path);
		strcat(path, "/" PARSER);
		execv(path, arguments);
	}
	execvp(PARSER, arguments);
	return refuse();
}

/* Without any argument, the dump that record writes. */
static int show(const char *format, const char *output, int argc, char **argv)
{
	char **arguments;
	int count = 0;

	if (argc < 2 && access(DUMP, F_OK) < 0) {
		tell("there is no " DUMP " here: record one, or name the dumps "
		     "(several processes and rotation have " DUMP ".PID...)");
		return STATUS_BAD;
	}
	arguments = calloc((size_t)argc + ADDED_MAX + 1, sizeof(*arguments));
	if (!arguments)
		return refuse();
	arguments[count++] = (char *)PARSER;
	arguments[count++] = (char *)format;
	if (output)
		arguments[count++] = (char *)output;
	for (int i = 1; i < argc; i++)
		arguments[count++] = argv[i];
	if (argc < 2)
		arguments[count++] = (char *)DUMP;
	return become_parser(arguments);
}

int command_report(int argc, char **argv)
{
	return show("--format=folded", NULL, argc, argv);
}

int command_top(int argc, char **argv)
{
	return show("--format=top", NULL, argc, argv);
}

int command_flamegraph(int argc, char **argv)
{
	return show("--format=html", "--output=sysprof.html", argc, argv);
}
