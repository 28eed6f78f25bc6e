// SPDX-License-Identifier: MIT
/*
 * luajit-sysprof perf-command PID: sets the probe of the profiler that this
 * process has loaded, unless it is set, and prints the perf command that
 * records it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "probe.h"
#include "process.h"

static void print_help(void)
{
	puts("Usage: luajit-sysprof perf-command [--dry-run] PID\n"
	     "Sets the probe luajit_sysprof:sample, for which it must run as "
	     "root, and prints the\n"
	     "perf command that records the process's merged stacks:\n"
	     "\n"
	     "  $(luajit-sysprof perf-command PID)\n"
	     "\n"
	     "  --dry-run   say what would be set, and set nothing");
}

static int tell_no_library(int pid)
{
	tell("process %d has not loaded libluajit-sysprof.so: let it run "
	     "require(\"misc\").sysprof.start{mode = \"C\", perf = true} first",
	     pid);
	return STATUS_BAD;
}

static int tell_not_set(int error)
{
	if (error == EACCES || error == EPERM)
		tell("the probe cannot be set: %s; run this as root",
		     strerror(error));
	else
		tell("the probe cannot be set: %s", strerror(error));
	return STATUS_BAD;
}

/* 0, or an exit status. */
static int settle_probe(const char *library, bool dry_run, char *name)
{
	uint64_t offset = probe_offset(library);
	int error;

	if (offset == 0) {
		tell("%s has no probe luajit_sysprof:sample: was it replaced "
		     "while the process runs?",
		     library);
		return STATUS_BAD;
	}
	if (!probe_list_answers()) {
		tell(PROBE_NO_ANSWER);
		return STATUS_BAD;
	}
	if (probe_find(library, offset, name))
		return 0;
	if (dry_run) {
		snprintf(name, PROBE_NAME_BYTES, "luajit_sysprof:sample");
		tell("would set p:luajit_sysprof/sample %s:0x%llx", library,
		     (unsigned long long)offset);
		return 0;
	}
	if (probe_tracing_directory()[0] == '\0') {
		tell("tracefs is not mounted: mount -t tracefs nodev "
		     "/sys/kernel/tracing");
		return STATUS_BAD;
	}
	error = probe_set(library, offset, name);
	return error == 0 ? 0 : tell_not_set(error);
}

int command_perf_command(int argc, char **argv)
{
	bool dry_run = argc > 1 && strcmp(argv[1], "--dry-run") == 0;
	char library[PROCESS_PATH_BYTES], name[PROBE_NAME_BYTES];
	struct process process;
	int pid, status;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		print_help();
		return STATUS_GOOD;
	}
	if (argc != 2 + dry_run) {
		tell("expected the PID of a process (see --help)");
		return STATUS_USAGE;
	}
	pid = parse_pid(argv[argc - 1]);
	if (pid == 0)
		return STATUS_USAGE;
	if (!process_read(&process, pid))
		return STATUS_BAD;
	if (process.library[0] == '\0')
		return tell_no_library(pid);
	if (!process.has_arena)
		tell("process %d has no names for perf yet: start its profile "
		     "with perf = true",
		     pid);
	process_path(&process, process.library, library);
	status = settle_probe(library, dry_run, name);
	if (status != 0)
		return status;
	printf("perf record -e %s -g -p %d\n", name, pid);
	return STATUS_GOOD;
}
