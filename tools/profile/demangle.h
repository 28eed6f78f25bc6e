// SPDX-License-Identifier: MIT
/* Names of C++ and Rust functions as they are in the source. */
#ifndef PROFILE_DEMANGLE_H
#define PROFILE_DEMANGLE_H

/* Without parameters, as perf shows them. NULL if it is not a mangled name;
 * else to be freed. */
char *demangle(const char *symbol);

#endif
