// SPDX-License-Identifier: MIT
/*
 * Events to sample by: their names, and which of them this system has. Ordinary
 * code.
 */
#include "clock.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lmisclib.h"

#define TRACEPOINTS "/sys/kernel/tracing/events"

#define HARDWARE PERF_TYPE_HARDWARE
#define SOFTWARE PERF_TYPE_SOFTWARE

/* Names as in perf list. Counts give some thousand samples a second in programs
 * that do little else, and fewer in others. */
static const struct sample_event known_events[] = {
	{"cycles", HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 1000000},
	{"instructions", HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 1000000},
	{"cache-references", HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, 10000},
	{"cache-misses", HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 1000},
	{"branches", HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 100000},
	{"branch-misses", HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 10000},
	{"bus-cycles", HARDWARE, PERF_COUNT_HW_BUS_CYCLES, 100000},
	{"ref-cycles", HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES, 1000000},
	{"cpu-clock", SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 1000000},
	{"task-clock", SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 1000000},
	{"page-faults", SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1},
	{"minor-faults", SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, 1},
	{"major-faults", SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1},
	{"context-switches", SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 1},
	{"cpu-migrations", SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, 1},
};

#define KNOWN_COUNT (sizeof(known_events) / sizeof(known_events[0]))

/* A tracepoint's number is in a file: "sched:sched_switch". */
static int find_tracepoint(const char *name, struct sample_event *event)
{
	const char *colon = strchr(name, ':');
	char path[sizeof(TRACEPOINTS) + sizeof(event->name) + 8];
	char text[24] = "";
	FILE *file;

	if (!colon || strchr(name, '/') || strstr(name, "..") ||
	    strlen(name) >= sizeof(event->name))
		return -1;
	snprintf(path, sizeof(path), "%s/%.*s/%s/id", TRACEPOINTS,
	         (int)(colon - name), name, colon + 1);
	file = fopen(path, "re");
	if (!file)
		return -1;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	*event = (struct sample_event){
		.type = PERF_TYPE_TRACEPOINT,
		.config = strtoull(text, NULL, 10),
		.count = 1,
	};
	strcpy(event->name, name);
	return event->config > 0 ? 0 : -1;
}

static bool works(const struct sample_event *event)
{
	struct sample_clock clock;

	if (sample_clock_open_event(&clock, event, (pid_t)syscall(SYS_gettid),
	                            event->count, NULL) < 0)
		return false;
	sample_clock_close(&clock);
	return true;
}

static void list_working(char *names, size_t bytes)
{
	size_t used = 0;

	names[0] = '\0';
	for (size_t i = 0; i < KNOWN_COUNT && used < bytes; i++)
		if (works(&known_events[i]))
			used += (size_t)snprintf(names + used, bytes - used,
			                         ", %s", known_events[i].name);
}

static int refuse(const char *name, const char *reason, struct error *error)
{
	char working[300];

	list_working(working, sizeof(working));
	return error_set(
		error, PROFILE_ERRUSE, EINVAL,
		"clock \"%.40s\" %s; here there are cpu, wall%s, and "
		"tracepoints such as sched:sched_switch if tracefs can "
		"be read",
		name, reason, working);
}

int sample_event_find(const char *name, struct sample_event *event,
                      struct error *error)
{
	size_t i = 0;

	while (i < KNOWN_COUNT && strcmp(known_events[i].name, name) != 0)
		i++;
	if (i < KNOWN_COUNT)
		*event = known_events[i];
	else if (find_tracepoint(name, event) < 0)
		return refuse(name, "is not known", error);
	return works(event) ? 0 : refuse(name, "cannot be counted here", error);
}
