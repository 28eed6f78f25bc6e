// SPDX-License-Identifier: MIT
/* A profiled process; see process.h. */
#include "process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"

/* Where perfmap/arena.c asks for it. */
#define ARENA_START 0x200000000000u

static FILE *open_proc(int pid, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	return fopen(path, "re");
}

static void copy_path(char *to, const char *path)
{
	snprintf(to, PROCESS_PATH_BYTES, "%s", path);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void read_mapping(struct process *process, char *line)
{
	char *path = strchr(line, '/');
	unsigned long long start = strtoull(line, NULL, 16);

	line[strcspn(line, "\n")] = '\0';
	if (!strstr(line, " r-xp "))
		return;
	if (start == ARENA_START)
		process->has_arena = true;
	if (!path)
		return;
	if (strncmp(base_name(path), "libluajit-sysprof.so",
	            strlen("libluajit-sysprof.so")) == 0)
		copy_path(process->library, path);
	if (strncmp(base_name(path), "jit-", 4) == 0 &&
	    strstr(base_name(path), ".dump"))
		copy_path(process->jitdump, path);
}

static void read_inner_pid(struct process *process)
{
	FILE *status = open_proc(process->pid, "status");
	char line[256];

	process->inner_pid = process->pid;
	while (status && fgets(line, sizeof(line), status)) {
		char *last = strrchr(line, '\t');

		if (strncmp(line, "NSpid:", 6) == 0 && last)
			process->inner_pid = atoi(last + 1);
	}
	if (status)
		fclose(status);
}

static bool has_other_mounts(int pid)
{
	struct stat own, other;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	return stat("/proc/self/ns/mnt", &own) == 0 &&
	       stat(path, &other) == 0 && own.st_ino != other.st_ino;
}

bool process_read(struct process *process, int pid)
{
	FILE *maps = open_proc(pid, "maps");
	char line[PROCESS_PATH_BYTES + 128];

	*process = (struct process){.pid = pid};
	if (!maps) {
		tell("process %d: %s", pid,
		     errno == ENOENT ? "there is none" : strerror(errno));
		return false;
	}
	while (fgets(line, sizeof(line), maps))
		read_mapping(process, line);
	if (ferror(maps)) {
		tell("/proc/%d/maps: %s; run this as root or as the user of "
		     "the process",
		     pid, strerror(errno));
		fclose(maps);
		return false;
	}
	fclose(maps);
	read_inner_pid(process);
	process->other_mounts = has_other_mounts(pid);
	return true;
}

void process_path(const struct process *process, const char *path,
                  char outside[PROCESS_PATH_BYTES])
{
	if (process->other_mounts)
		snprintf(outside, PROCESS_PATH_BYTES, "/proc/%d/root%.4000s",
		         process->pid, path);
	else
		copy_path(outside, path);
}
