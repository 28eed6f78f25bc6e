// SPDX-License-Identifier: MIT
/*
 * Copies of this process's own memory that may be unmapped at any moment, as
 * that of a library which another thread unloads. System calls: not for the
 * signal handler, which has load_sig.h.
 */
#ifndef HOST_OWN_MEMORY_H
#define HOST_OWN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False if not all of it can be read. */
bool own_memory_read(uint64_t address, void *to, size_t bytes);

#endif
