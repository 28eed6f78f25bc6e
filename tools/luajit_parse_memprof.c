// SPDX-License-Identifier: MIT
/*
 * luajit-parse-memprof: reads a memory profile and says which line holds the
 * memory. The man page doc/luajit-parse-memprof.1 describes it.
 */
#include "memprof_command.h"

int main(int argc, char **argv)
{
	return memprof_command(argc, argv);
}
