// SPDX-License-Identifier: MIT
/*
 * Why something was refused: a code for programs, a text for people.
 * Never used in the signal handler: it formats.
 */
#ifndef LIB_ERROR_H
#define LIB_ERROR_H

struct error {
	int code;      /* PROFILE_ERR* of lmisclib.h */
	int sys_errno; /* errno to hand to Lua; EINVAL where none fits better */
	char text[512]; /* cause and remedy, no newline */
};

/* Fills *error (which may be NULL) and returns -1, so that a function can
 * end in `return error_set(...)`. */
int error_set(struct error *error, int code, int sys_errno, const char *format,
              ...) __attribute__((format(printf, 4, 5)));

#endif
