// SPDX-License-Identifier: MIT
/* What luajit-parse-sysprof and luajit-parse-memprof have in common as commands:
 * exit codes, messages and the file that they write. */
#ifndef TOOLS_PARSER_COMMAND_H
#define TOOLS_PARSER_COMMAND_H

#include <stdio.h>

enum exit_code {
	EXIT_GOOD = 0,
	EXIT_BAD_INPUT = 1, /* also I/O errors */
	EXIT_USAGE = 2,
};

/* Each of the two programs defines its own. */
extern const char parser_name[];

/* Prints "luajit-parse-…: …" to standard error. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for wrong usage, with where to read on. Returns EXIT_USAGE. */
int usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Opens what --output names, NULL: standard output. NULL after a message. */
FILE *open_output(const char *path);

/* Ends it, with error_code (0: none) if what was written beside it failed.
 * Returns the exit code, after a message if it is not EXIT_GOOD. */
int close_output(FILE *file, const char *path, int error_code);

#endif
