// SPDX-License-Identifier: MIT
/* luajit-parse-sysprof, the program; see sysprof_command.h. */
#include "sysprof_command.h"

int main(int argc, char **argv)
{
	return sysprof_command(argc, argv);
}
