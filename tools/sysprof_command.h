// SPDX-License-Identifier: MIT
/* luajit-parse-sysprof as a function: the program and the Lua module run it. */
#ifndef TOOLS_SYSPROF_COMMAND_H
#define TOOLS_SYSPROF_COMMAND_H

/* argv[0] is not looked at; argv[argc] is NULL. Writes to standard output and
 * standard error; returns the exit code. Not for two threads at once. */
int sysprof_command(int argc, char **argv);

#endif
