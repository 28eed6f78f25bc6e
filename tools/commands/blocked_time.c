// SPDX-License-Identifier: MIT
/* How long a thread is blocked; see blocked_time.h. */
#include "blocked_time.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROCESSOR_FIELD 39 /* of /proc/PID/stat */

struct blocked_call blocked_call_read(pid_t pid, pid_t thread_id)
{
	struct blocked_call call = {.number = -1};
	uint64_t *arguments = call.arguments;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid,
	         (int)thread_id);
	file = fopen(path, "re");
	if (!file)
		return call;
	if (fscanf(file, "%ld %lx %lx %lx %lx %lx %lx", &call.number,
	           &arguments[0], &arguments[1], &arguments[2], &arguments[3],
	           &arguments[4], &arguments[5]) != 7)
		call.number = -1;
	fclose(file);
	return call;
}

/* Of the scheduler's file: when the thread was put on the CPU or taken off it, and
 * how often it gave it up. */
static bool read_schedule(pid_t pid, pid_t thread_id, uint64_t *since_ns,
                          unsigned long *switches)
{
	char path[64], line[256];
	bool has_since = false, has_switches = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/sched", (int)pid,
	         (int)thread_id);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		unsigned long ms, ns, count;

		if (sscanf(line, "se.exec_start : %lu.%6lu", &ms, &ns) == 2) {
			*since_ns = (uint64_t)ms * 1000000 + ns;
			has_since = true;
		}
		if (sscanf(line, "nr_voluntary_switches : %lu", &count) == 1) {
			*switches = count;
			has_switches = true;
		}
	}
	if (file)
		fclose(file);
	return has_since && has_switches;
}

/* -1: not known. */
static int read_cpu(pid_t pid, pid_t thread_id)
{
	char path[64], line[1024] = "";
	const char *field;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid,
	         (int)thread_id);
	file = fopen(path, "re");
	if (!file)
		return -1;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	/* The third field is behind the name. */
	field = strrchr(line, ')');
	for (int i = 2; field && i < PROCESSOR_FIELD; i++)
		field = strchr(field + 1, ' ');
	return field ? atoi(field) : -1;
}

/* The scheduler's clocks of two CPUs may be far apart: they leave out what the
 * machine below has taken. So this asks for the time on that CPU. */
static bool read_clock(int cpu, uint64_t *now_ns)
{
	static const struct timespec pause = {.tv_nsec = 1000};
	cpu_set_t before, only;
	unsigned long switches;
	bool read;

	CPU_ZERO(&only);
	if (cpu < 0 || cpu >= CPU_SETSIZE ||
	    sched_getaffinity(0, sizeof(before), &before) < 0)
		return false;
	CPU_SET(cpu, &only);
	if (sched_setaffinity(0, sizeof(only), &only) < 0)
		return false;
	/* It notes the time when it puts a thread on a CPU. */
	nanosleep(&pause, NULL);
	read = sched_getcpu() == cpu &&
	       read_schedule(getpid(), gettid(), now_ns, &switches);
	sched_setaffinity(0, sizeof(before), &before);
	return read;
}

void blocked_time_note(struct blocked_time *time, pid_t pid, pid_t thread_id)
{
	*time = (struct blocked_time){
		.cpu = read_cpu(pid, thread_id),
		.call = blocked_call_read(pid, thread_id),
	};
	time->is_known =
		read_schedule(pid, thread_id, &time->since_ns, &time->switches);
}

/* Also in what is no argument: what another call would have left there. */
static bool is_same_call(const struct blocked_call *a,
                         const struct blocked_call *b)
{
	return a->number >= 0 && a->number == b->number &&
	       memcmp(a->arguments, b->arguments, sizeof(a->arguments)) == 0;
}

void blocked_time_settle(struct blocked_time *time, pid_t pid, pid_t thread_id,
                         const struct blocked_call *call)
{
	uint64_t since_ns, now_ns;
	unsigned long switches;
	struct timespec now;

	/* It has woken up to be stopped, and for nothing else. */
	time->is_known = time->is_known && is_same_call(&time->call, call) &&
	                 read_schedule(pid, thread_id, &since_ns, &switches) &&
	                 switches == time->switches + 1 &&
	                 read_clock(time->cpu, &now_ns) &&
	                 now_ns > time->since_ns;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (time->is_known)
		time->start_ns = (uint64_t)now.tv_sec * 1000000000u +
		                 (uint64_t)now.tv_nsec -
		                 (now_ns - time->since_ns);
}
