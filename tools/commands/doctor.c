// SPDX-License-Identifier: MIT
/*
 * luajit-sysprof doctor: looks at what keeps perf from seeing Lua, on this
 * machine, in a process and in a recording. One line a finding, with the remedy
 * where something is wrong.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"
#include "perf_file.h"
#include "probe.h"
#include "process.h"

#define PERF_FRAMES_DEFAULT 127

struct findings {
	int bad_count;
	bool list_is_stuck; /* the kernel's, of probes */
};

enum grade {
	GRADE_OK,
	GRADE_NOTE, /* works, but one should know */
	GRADE_BAD,
};

static void find(struct findings *findings, enum grade grade,
                 const char *format, ...) __attribute__((format(printf, 3, 4)));

static void find(struct findings *findings, enum grade grade,
                 const char *format, ...)
{
	static const char *const marks[] = {
		[GRADE_OK] = "ok",
		[GRADE_NOTE] = "note",
		[GRADE_BAD] = "BAD",
	};
	va_list arguments;

	printf("%-5s", marks[grade]);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	findings->bad_count += grade == GRADE_BAD;
}

/* ---- the machine ------------------------------------------------------- */

static long read_setting(const char *name, long otherwise)
{
	char path[128];
	FILE *file;
	long value;

	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	file = fopen(path, "re");
	if (!file)
		return otherwise;
	if (fscanf(file, "%ld", &value) != 1)
		value = otherwise;
	fclose(file);
	return value;
}

static void look_at_perf(struct findings *findings)
{
	FILE *perf = popen("perf --version 2>/dev/null", "re");
	char version[128] = "";

	if (perf && fgets(version, sizeof(version), perf))
		version[strcspn(version, "\n")] = '\0';
	if (perf && pclose(perf) == 0 && version[0] != '\0')
		find(findings, GRADE_OK, "%s", version);
	else
		find(findings, GRADE_BAD,
		     "perf is missing: install it (Debian package: "
		     "linux-perf)");
}

static void look_at_rights(struct findings *findings)
{
	long level = read_setting("perf_event_paranoid", 4);

	if (geteuid() == 0 || level <= 1)
		find(findings, GRADE_OK, "perf may record (paranoid level %ld)",
		     level);
	else if (level == 2)
		find(findings, GRADE_NOTE,
		     "perf may record own processes, without the kernel "
		     "(paranoid level 2)");
	else
		find(findings, GRADE_BAD,
		     "perf may not record (paranoid level %ld): run it as "
		     "root, or set kernel.perf_event_paranoid to 2",
		     level);
}

static void look_at_depth(struct findings *findings)
{
	long depth = read_setting("perf_event_max_stack", PERF_FRAMES_DEFAULT);

	if (depth > PERF_FRAMES_DEFAULT)
		find(findings, GRADE_OK, "perf records up to %ld frames",
		     depth);
	else
		find(findings, GRADE_NOTE,
		     "perf records at most %ld frames of a stack: sysctl "
		     "kernel.perf_event_max_stack=512, and perf report "
		     "--max-stack 512, show deeper ones",
		     depth);
}

static void look_at_tracing(struct findings *findings)
{
	const char *directory = probe_tracing_directory();
	char path[128];

	if (directory[0] == '\0') {
		find(findings, GRADE_BAD,
		     "tracefs is not mounted, so there are no probes: mount "
		     "-t tracefs nodev /sys/kernel/tracing");
		return;
	}
	snprintf(path, sizeof(path), "%s/uprobe_events", directory);
	findings->list_is_stuck = !probe_list_answers();
	if (findings->list_is_stuck)
		find(findings, GRADE_BAD, PROBE_NO_ANSWER);
	else if (access(path, R_OK | W_OK) == 0)
		find(findings, GRADE_OK, "probes can be set (%s)", path);
	else
		find(findings, GRADE_BAD,
		     "%s: %s; probes are set and recorded by root alone", path,
		     strerror(errno));
}

/* As the jitdump does it. */
static void look_at_directory(struct findings *findings, const char *directory)
{
	char path[PROCESS_PATH_BYTES];
	void *page = MAP_FAILED;
	int fd;

	snprintf(path, sizeof(path), "%s/luajit-sysprof-XXXXXX", directory);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0) {
		find(findings, GRADE_BAD, "%s: %s", directory, strerror(errno));
		return;
	}
	page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC,
	            MAP_PRIVATE, fd, 0);
	if (page != MAP_FAILED)
		find(findings, GRADE_OK, "%s takes jitdumps", directory);
	else
		find(findings, GRADE_BAD,
		     "%s is mounted noexec, so perf does not find a jitdump "
		     "there: use perf_dir, or the map file (perf = true)",
		     directory);
	if (page != MAP_FAILED)
		munmap(page, (size_t)sysconf(_SC_PAGESIZE));
	close(fd);
	unlink(path);
}

/* The pid in perf-<pid>.map and jit-<pid>.dump, 0 for other names. */
static int pid_of_file(const char *name)
{
	const char *digits = strncmp(name, "perf-", 5) == 0  ? name + 5
	                     : strncmp(name, "jit-", 4) == 0 ? name + 4
	                                                     : "x";
	char *end;
	long pid = strtol(digits, &end, 10);

	if (!isdigit((unsigned char)*digits) ||
	    (strcmp(end, ".map") != 0 && strcmp(end, ".dump") != 0))
		return 0;
	return (int)pid;
}

static void look_at_leftovers(struct findings *findings)
{
	DIR *directory = opendir("/tmp");
	struct dirent *entry;
	size_t count = 0;

	while (directory && (entry = readdir(directory)) != NULL) {
		int pid = pid_of_file(entry->d_name);

		if (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH)
			count++;
	}
	if (directory)
		closedir(directory);
	if (count > 0)
		find(findings, GRADE_NOTE,
		     "/tmp has %zu files of processes that are gone "
		     "(perf-PID.map, jit-PID.dump): perf report needs them "
		     "as long as their recordings are looked at",
		     count);
}

/* ---- a process --------------------------------------------------------- */

static void look_at_probe(struct findings *findings,
                          const struct process *process)
{
	char library[PROCESS_PATH_BYTES], name[PROBE_NAME_BYTES];
	uint64_t offset;

	process_path(process, process->library, library);
	offset = probe_offset(library);
	if (offset == 0)
		find(findings, GRADE_BAD,
		     "%s has no probe: was it replaced while the process "
		     "runs?",
		     library);
	else if (findings->list_is_stuck)
		find(findings, GRADE_NOTE,
		     "whether the probe is set is not known");
	else if (probe_find(library, offset, name))
		find(findings, GRADE_OK, "the probe is set: %s", name);
	else
		find(findings, GRADE_NOTE,
		     "the probe is not set: luajit-sysprof perf-command %d",
		     process->pid);
}

static void look_at_map(struct findings *findings,
                        const struct process *process)
{
	char inside[64], path[PROCESS_PATH_BYTES];
	struct stat status;

	snprintf(inside, sizeof(inside), "/tmp/perf-%d.map",
	         process->inner_pid);
	process_path(process, inside, path);
	if (stat(path, &status) != 0)
		find(findings, process->has_arena ? GRADE_BAD : GRADE_NOTE,
		     "%s: %s; start the profile with perf = true", path,
		     strerror(errno));
	else if (access(path, R_OK) != 0)
		find(findings, GRADE_BAD, "%s: %s", path, strerror(errno));
	else
		find(findings, GRADE_OK, "%s has %lld bytes of names", path,
		     (long long)status.st_size);
}

static void look_at_jitdump(struct findings *findings,
                            const struct process *process)
{
	char path[PROCESS_PATH_BYTES], expected[64];
	const char *name = strrchr(process->jitdump, '/');

	if (!name) {
		find(findings, GRADE_NOTE,
		     "no jitdump is mapped: perf = \"jitdump\" makes one, for "
		     "lines and callers of traces");
		return;
	}
	process_path(process, process->jitdump, path);
	snprintf(expected, sizeof(expected), "/jit-%d.dump",
	         process->inner_pid);
	if (strcmp(name, expected) != 0)
		find(findings, GRADE_BAD,
		     "the jitdump %s is that of another process: a child of a "
		     "fork has its own as soon as it compiles",
		     process->jitdump);
	else if (access(path, R_OK) != 0)
		find(findings, GRADE_BAD, "%s: %s; perf inject needs it", path,
		     strerror(errno));
	else
		find(findings, GRADE_OK, "jitdump %s", path);
	if (strncmp(process->jitdump, "/tmp/", 5) != 0)
		find(findings, GRADE_NOTE,
		     "the jitdump is not in /tmp: a perf that unwinds with "
		     "libdw finds no callers of traces then");
}

static void look_at_namespaces(struct findings *findings,
                               const struct process *process)
{
	if (process->inner_pid != process->pid || process->other_mounts)
		find(findings, GRADE_NOTE,
		     "process %d is in a container, where its pid is %d: run "
		     "perf report while it runs, or copy its files to /tmp "
		     "here, named by %d",
		     process->pid, process->inner_pid, process->pid);
}

static int look_at_process(struct findings *findings, int pid)
{
	struct process process;

	if (!process_read(&process, pid))
		return STATUS_BAD;
	look_at_namespaces(findings, &process);
	if (process.library[0] == '\0') {
		find(findings, GRADE_BAD,
		     "process %d has not loaded the profiler: let it run "
		     "require(\"misc\").sysprof.start",
		     pid);
		return STATUS_GOOD;
	}
	find(findings, GRADE_OK, "process %d has loaded %s", pid,
	     process.library);
	look_at_probe(findings, &process);
	look_at_map(findings, &process);
	look_at_jitdump(findings, &process);
	return STATUS_GOOD;
}

/* ---- a recording ------------------------------------------------------- */

/* Path in a MMAP or MMAP2 record; "" in others. */
static const char *mapped_path(const struct perf_event_header *record)
{
	const char *bytes = (const char *)record;
	size_t offset = record->type == PERF_RECORD_MMAP    ? 40
	                : record->type == PERF_RECORD_MMAP2 ? 72
	                                                    : 0;

	if (offset == 0 || record->size <= offset ||
	    !memchr(bytes + offset, '\0', record->size - offset))
		return "";
	return bytes + offset;
}

static int look_at_recording(struct findings *findings, const char *path)
{
	const struct perf_event_header *record;
	size_t dumps = 0, objects = 0;
	struct perf_file file;

	if (!perf_file_open(&file, path)) {
		tell("%s", file.error);
		perf_file_close(&file);
		return STATUS_BAD;
	}
	while ((record = perf_file_next(&file)) != NULL) {
		const char *name = strrchr(mapped_path(record), '/');

		if (!name)
			continue;
		dumps += strncmp(name, "/jit-", 5) == 0;
		objects += strncmp(name, "/jitted-", 8) == 0;
	}
	if (perf_file_is_monotonic(&file))
		find(findings, GRADE_OK, "%s has the monotonic clock", path);
	else
		find(findings, GRADE_BAD,
		     "%s has another clock, and perf inject --jit makes no "
		     "objects of it, without an error: record with perf "
		     "record -k mono",
		     path);
	if (objects > 0)
		find(findings, GRADE_OK, "it knows %zu objects of a jitdump",
		     objects);
	else if (dumps > 0)
		find(findings, GRADE_NOTE,
		     "it has seen a jitdump: perf inject --jit -i %s -o FILE",
		     path);
	else
		find(findings, GRADE_NOTE,
		     "it has seen no jitdump: none was mapped, or not "
		     "executable");
	perf_file_close(&file);
	return STATUS_GOOD;
}

/* ---- the command ------------------------------------------------------- */

static void print_help(void)
{
	puts("Usage: luajit-sysprof doctor [-i perf.data] [-d DIRECTORY] "
	     "[PID]\n"
	     "Looks at this machine, and at a process that is profiled, for "
	     "what perf needs.\n"
	     "\n"
	     "  -i FILE        look at a recording, too\n"
	     "  -d DIRECTORY   where jitdumps go (perf_dir; /tmp)\n"
	     "\n"
	     "Exit status: 0 nothing is wrong, 1 something is, 2 wrong "
	     "usage.");
}

int command_doctor(int argc, char **argv)
{
	const char *recording = NULL, *directory = "/tmp";
	struct findings findings = {0};
	int option, status = STATUS_GOOD, pid = 0;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		print_help();
		return STATUS_GOOD;
	}
	while ((option = getopt(argc, argv, "i:d:")) != -1) {
		if (option == 'i')
			recording = optarg;
		else if (option == 'd')
			directory = optarg;
		else
			return STATUS_USAGE;
	}
	if (argc - optind > 1) {
		tell("expected one PID, got '%.100s' too (see --help)",
		     argv[optind + 1]);
		return STATUS_USAGE;
	}
	if (optind < argc && (pid = parse_pid(argv[optind])) == 0)
		return STATUS_USAGE;

	look_at_perf(&findings);
	look_at_rights(&findings);
	look_at_tracing(&findings);
	look_at_depth(&findings);
	look_at_directory(&findings, directory);
	look_at_leftovers(&findings);
	if (pid != 0)
		status = look_at_process(&findings, pid);
	if (recording && status == STATUS_GOOD)
		status = look_at_recording(&findings, recording);
	return status != STATUS_GOOD || findings.bad_count > 0 ? STATUS_BAD
	                                                       : STATUS_GOOD;
}
