// SPDX-License-Identifier: MIT
#include "error.h"

#include <stdarg.h>
#include <stdio.h>

int error_set(struct error *error, int code, int sys_errno, const char *format,
              ...)
{
	va_list args;

	if (!error)
		return -1;
	error->code = code;
	error->sys_errno = sys_errno;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return -1;
}
