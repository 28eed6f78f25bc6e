// SPDX-License-Identifier: MIT
/*
 * The probe that the profiler lights at each sample, as the kernel knows it.
 */
#ifndef COMMANDS_PROBE_H
#define COMMANDS_PROBE_H

#include <stdbool.h>
#include <stdint.h>

/* Where events are defined; "" if tracefs is not mounted. */
const char *probe_tracing_directory(void);

/* Offset of the probe in the file of the library; 0 if it has none. */
uint64_t probe_offset(const char *library);

#define PROBE_NAME_BYTES 128

/* Is a probe set at this offset of this file? Its name is GROUP:EVENT then. */
bool probe_find(const char *library, uint64_t offset,
                char name[PROBE_NAME_BYTES]);

/* Sets it, as luajit_sysprof:sample. 0 or an errno. */
int probe_set(const char *library, uint64_t offset);

/* Removes the one that was set, unless somebody records it. */
void probe_remove(void);

#define PROBE_OWN_NAME "luajit_sysprof:sample"

#endif
