// SPDX-License-Identifier: MIT
/*
 * Sub-commands of luajit-sysprof: one file each, and a row in the table of
 * tools/luajit_sysprof.c.
 */
#ifndef COMMANDS_COMMANDS_H
#define COMMANDS_COMMANDS_H

enum exit_status {
	STATUS_GOOD = 0,
	STATUS_BAD = 1, /* also I/O errors */
	STATUS_USAGE = 2,
};

/* argv[0] is the name of the sub-command. Returns an exit status. */
int command_doctor(int argc, char **argv);
int command_inject(int argc, char **argv);
int command_perf_command(int argc, char **argv);
int command_record(int argc, char **argv);
int command_report(int argc, char **argv);
int command_top(int argc, char **argv);
int command_flamegraph(int argc, char **argv);

/* Prints "luajit-sysprof NAME: …" to standard error; NAME is the sub-command
 * that runs. */
void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The process id that the argument is; 0, with a message, if it is none. */
int parse_pid(const char *argument);

#endif
