// SPDX-License-Identifier: MIT
/*
 * Target: the memory of another process and the objects that it has loaded, read
 * from the process itself, so that it does not matter which files it can see.
 * Needs the rights of ptrace(2). x86-64.
 */
#ifndef COMMANDS_TARGET_H
#define COMMANDS_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TARGET_NAME_BYTES 256

/* Executable code of the process. */
struct target_code {
	uint64_t start, end;
	uint64_t base;                /* where its file's start is mapped */
	char name[TARGET_NAME_BYTES]; /* file without directory, "" : none */
};

struct target {
	pid_t pid;
	int memory; /* /proc/PID/mem */
	struct target_code *codes;
	size_t code_count;
};

/* 0 or an errno. The codes are those of now. */
int target_open(struct target *target, pid_t pid);
void target_close(struct target *target);

bool target_read(const struct target *target, uint64_t address, void *to,
                 size_t bytes);
bool target_write(const struct target *target, uint64_t address,
                  const void *from, size_t bytes);

/* Behind what can be read from address on, that is the end of the mapping. */
uint64_t target_mapping_end(const struct target *target, uint64_t address);

/* Address of a function that an object exports; 0: it does not. */
uint64_t target_find_symbol(const struct target *target,
                            const struct target_code *code, const char *name);
/* The same, of any object. */
uint64_t target_find_any_symbol(const struct target *target, const char *name);

/* Address of these bytes in the code; 0: they are not there. */
uint64_t target_find_bytes(const struct target *target,
                           const struct target_code *code, const void *bytes,
                           size_t count);

/* The code that an address is in; NULL: in none that has a file. */
const struct target_code *target_code_at(const struct target *target,
                                         uint64_t address);

/* Is it an object of the C library: libc, the loader, threads? */
bool target_is_c_library(const struct target_code *code);
/* The part with malloc(3) and, since 2.34, all others; NULL: none is loaded. */
const struct target_code *target_libc(const struct target *target);

#endif
