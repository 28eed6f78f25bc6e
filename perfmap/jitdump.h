// SPDX-License-Identifier: MIT
/*
 * Jitdump: jit-<pid>.dump, from which `perf inject --jit` makes an object file
 * for each piece of generated code, with symbol, lines and unwind rules.
 * Knows nothing of who generates the code. Runs on one thread at a time, never
 * in the signal handler.
 *
 * perf finds the file by its name in a mapping that is executable: a page of
 * it stays mapped until jitdump_close(). The recording must use the same clock
 * (perf record -k mono).
 */
#ifndef PERFMAP_JITDUMP_H
#define PERFMAP_JITDUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JITDUMP_DIRECTORY_DEFAULT "/tmp"
#define JITDUMP_PATH_BYTES        1024

struct jitdump {
	int fd;
	bool failed; /* a write failed: nothing more is written */
	void *marker;
	uint64_t next_index; /* of the next piece of code */
	uint64_t written;    /* bytes of whole groups in the file */
	uint64_t opened_ns;  /* CLOCK_MONOTONIC */
	uint8_t *group;      /* records under construction */
	size_t group_bytes;
	size_t group_capacity;
	char path[JITDUMP_PATH_BYTES];
};

/* From this address on, to the next one, the code belongs to the line. */
struct jitdump_line {
	uint64_t address;
	uint32_t line;
	const char *file;
};

/* A register that the code's prologue has saved. */
struct jitdump_saved {
	uint8_t dwarf_register;
	uint8_t cfa_words; /* it lies so many words below the CFA */
};

/*
 * How to find the caller from any instruction. The return address lies right
 * below the CFA.
 *
 * perf maps the rules behind the code, where they hide whatever else is there.
 * Without them in the mapping libunwind cannot read them (Debian's perf 6.1 and
 * 6.12), but libdw can (7.2).
 */
#define JITDUMP_ROOM_BYTES 80

struct jitdump_frame {
	bool has_room;      /* of JITDUMP_ROOM_BYTES, behind the code */
	uint32_t cfa_bytes; /* CFA - stack pointer, 0: no rule */
	const struct jitdump_saved *saved;
	size_t saved_count;
};

struct jitdump_code {
	uint64_t time_ns; /* CLOCK_MONOTONIC, before it first runs */
	uint32_t thread_id;
	uint64_t address;
	uint64_t bytes;
	const void *contents; /* bytes of them */
	const char *name;     /* name_bytes, none of them NUL */
	size_t name_bytes;
	const struct jitdump_line *lines; /* ascending */
	size_t line_count;
	struct jitdump_frame frame;
};

/*
 * Creates DIRECTORY/jit-<pid>.dump for this process, as own_file_create() does,
 * and maps its first page. Returns 0 or a negative errno; -EPERM where the
 * directory's file system is mounted noexec. dump->path is set in any case but
 * -ENAMETOOLONG.
 */
int jitdump_open(struct jitdump *dump, const char *directory);

/* Appends unwind rules, lines and code, in one write. Returns 0 or a negative
 * errno; after a failure, for which nothing is left in the file, always -EIO. */
int jitdump_append(struct jitdump *dump, const struct jitdump_code *code);

/* In the child of a fork: lets go of the parent's file and creates the child's,
 * with the same code, there since now. */
int jitdump_inherit(struct jitdump *dump, const char *directory);

/* Unmaps and closes; the file stays for perf. A recording that goes on would
 * not find it any more. */
void jitdump_close(struct jitdump *dump);

#endif
