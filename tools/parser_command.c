// SPDX-License-Identifier: MIT
/* What both parsers have in common; see parser_command.h. */
#include "parser_command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

static void say_arguments(const char *format, va_list arguments,
                          const char *ending)
{
	fprintf(stderr, "%s: ", parser_name);
	vfprintf(stderr, format, arguments);
	fputs(ending, stderr);
}

void say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say_arguments(format, arguments, "\n");
	va_end(arguments);
}

int usage_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say_arguments(format, arguments, " (see --help)\n");
	va_end(arguments);
	return EXIT_USAGE;
}

static int cannot_write(const char *path, int error_code)
{
	say("cannot write %s: %s", path ? path : "standard output",
	    strerror(error_code));
	return EXIT_BAD_INPUT;
}

FILE *open_output(const char *path)
{
	FILE *file = path ? fopen(path, "we") : stdout;

	if (file == NULL)
		cannot_write(path, errno);
	return file;
}

int close_output(FILE *file, const char *path, int error_code)
{
	bool failed;

	if (error_code != 0)
		errno = error_code;
	failed = ferror(file) != 0 || error_code != 0;
	if (file == stdout)
		failed |= fflush(file) != 0;
	else
		failed |= fclose(file) != 0;
	return failed ? cannot_write(path, errno) : EXIT_GOOD;
}
