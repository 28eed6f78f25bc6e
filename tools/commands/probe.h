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

/* Does the kernel's list of probes answer? Where a fault of the kernel has ended
 * somebody who held its lock, whoever reads it waits for ever, and so does perf: ask
 * before the functions above and below. True where there is no list. */
bool probe_list_answers(void);

#define PROBE_NO_ANSWER                                                        \
	"the kernel's list of probes does not answer: see dmesg for what "     \
	"ended "                                                               \
	"its user, and restart the machine"

/* Sets it, as luajit_sysprof:sample, or as luajit_sysprof:sample_2 and so on where
 * other libraries have those. 0 or an errno. */
int probe_set(const char *library, uint64_t offset,
              char name[PROBE_NAME_BYTES]);

/* Removes the one that was set, unless somebody records it. */
void probe_remove(const char *name);

#endif
