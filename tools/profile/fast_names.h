// SPDX-License-Identifier: MIT
/*
 * Names of fast functions for dumps that do not carry them: those of the
 * profiler built into Tarantool's LuaJIT (October 2024 and near it). Dumps with
 * our extension bring the names of their own virtual machine.
 */
#ifndef PROFILE_FAST_NAMES_H
#define PROFILE_FAST_NAMES_H

#include <stdint.h>

/* "string.format"; NULL for an unknown number. */
const char *fast_name(uint64_t number);

#endif
