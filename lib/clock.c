// SPDX-License-Identifier: MIT
/*
 * Sample clock: opening, starting and stopping it. Ordinary code only.
 *
 * The perf event needs no ring buffer: with wakeup_events = 1 each overflow
 * raises the signal of the descriptor, and the event goes on by itself. It has one
 * only where the kernel's frames are wanted, which nobody but the kernel can tell.
 *
 * A pending signal outlives execve(2), and so does an interval timer: where SIGPROF
 * is the signal, a host that replaces itself has to stop its profile first.
 */
#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lmisclib.h"
#include "own_thread.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define NS_PER_SECOND 1000000000
#define NS_PER_US     1000

/* A power of two: some 15 stacks of the greatest depth, 100 usual ones. More of
 * them come between two signals only where a system call takes long. */
#define KERNEL_RING_PAGES 4

static int clock_signal = SIGPROF;

int sample_clock_signal(void)
{
	return clock_signal;
}

void sample_clock_set_signal(int signal)
{
	clock_signal = signal;
}

/* The clock that clock_getcpuclockid(3) has for a process, for one thread:
 * MAKE_THREAD_CPUCLOCK(thread_id, CPUCLOCK_SCHED) of Linux' posix-timers.h. */
static clockid_t thread_cpu_clock(pid_t thread_id)
{
	return (clockid_t)(~(unsigned)thread_id << 3 | 4 | 2);
}

/* ---- perf task clock ---------------------------------------------------- */

static void ask_for_kernel(struct perf_event_attr *attributes)
{
	attributes->sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN;
	attributes->exclude_callchain_user = 1;
	attributes->use_clockid = 1;
	attributes->clockid = CLOCK_MONOTONIC;
}

static int open_perf_event(struct sample_clock *clock, pid_t thread_id,
                           bool with_kernel)
{
	bool counts_time = clock->kind == SAMPLE_CLOCK_PERF;
	struct perf_event_attr attributes = {
		.type = counts_time ? PERF_TYPE_SOFTWARE : clock->event.type,
		.config = counts_time ? PERF_COUNT_SW_TASK_CLOCK
	                              : clock->event.config,
		.size = sizeof(attributes),
		.sample_period = clock->interval_ns,
		.wakeup_events = 1,
		.disabled = 1,
		.exclude_hv = 1,
		.exclude_kernel = clock->user_only,
	};

	if (with_kernel)
		ask_for_kernel(&attributes);
	clock->fd = (int)syscall(SYS_perf_event_open, &attributes, thread_id,
	                         -1, -1, PERF_FLAG_FD_CLOEXEC);
	return clock->fd;
}

static int send_overflows_to(int fd, pid_t thread_id)
{
	struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = thread_id};

	if (fcntl(fd, F_SETSIG, clock_signal) < 0 ||
	    fcntl(fd, F_SETOWN_EX, &owner) < 0)
		return -1;
	return fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK);
}

static int prepare_perf_clock(struct sample_clock *clock, pid_t thread_id)
{
	int code;

	if (send_overflows_to(clock->fd, thread_id) == 0 &&
	    ioctl(clock->fd, PERF_EVENT_IOC_ID, &clock->event_id) == 0)
		return 0;
	code = -errno;
	close(clock->fd);
	clock->fd = -1;
	return code;
}

/* Where perf_event_paranoid forbids to sample the kernel, user code is better
 * than the tick of a timer. */
static int open_perf_clock(struct sample_clock *clock, pid_t thread_id)
{
	clock->user_only = false;
	if (open_perf_event(clock, thread_id, false) < 0 &&
	    (errno == EACCES || errno == EPERM)) {
		clock->user_only = true;
		open_perf_event(clock, thread_id, false);
	}
	return clock->fd < 0 ? -errno : prepare_perf_clock(clock, thread_id);
}

/* ---- with the kernel's frames --------------------------------------------- */

static size_t kernel_ring_bytes(void)
{
	return (1 + KERNEL_RING_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
}

static int map_kernel_ring(struct sample_clock *clock)
{
	void *ring = mmap(NULL, kernel_ring_bytes(), PROT_READ | PROT_WRITE,
	                  MAP_SHARED, clock->fd, 0);

	if (ring == MAP_FAILED)
		return -errno;
	clock->kernel_ring = ring;
	return 0;
}

static int refuse_kernel(int code, const char *call, struct error *error)
{
	const char *remedy =
		strcmp(call, "mmap") == 0
			? "kernel.perf_event_mlock_kb is too little, or "
			  "RLIMIT_MEMLOCK"
			: "set kernel.perf_event_paranoid to 1, or give "
			  "CAP_PERFMON";

	return error_set(error, PROFILE_ERRIO, -code,
	                 "the kernel does not tell its frames (%s: %s); %s",
	                 call, strerror(-code), remedy);
}

int sample_clock_open_with_kernel(struct sample_clock *clock,
                                  const struct sample_event *event,
                                  pid_t thread_id, uint64_t interval,
                                  struct error *error)
{
	int code;

	memset(clock, 0, sizeof(*clock));
	clock->thread_id = thread_id;
	clock->kind = event ? SAMPLE_CLOCK_EVENT : SAMPLE_CLOCK_PERF;
	if (event)
		clock->event = *event;
	clock->interval_ns = interval;
	code = open_perf_event(clock, thread_id, true) < 0
	               ? -errno
	               : prepare_perf_clock(clock, thread_id);
	if (code < 0)
		return refuse_kernel(code, "perf_event_open", error);
	code = map_kernel_ring(clock);
	if (code == 0)
		return 0;
	sample_clock_close(clock);
	return refuse_kernel(code, "mmap", error);
}

/* ---- timer of a thread --------------------------------------------------- */

static int open_timer(struct sample_clock *clock, clockid_t time,
                      pid_t thread_id)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID,
		.sigev_signo = clock_signal,
		.sigev_value.sival_ptr = clock,
	};

	event.sigev_notify_thread_id = thread_id;
	return timer_create(time, &event, &clock->timer) < 0 ? -errno : 0;
}

/* 0: it stands still. */
static int set_timer(struct sample_clock *clock, uint64_t interval_ns)
{
	struct timespec interval = {
		.tv_sec = (time_t)(interval_ns / NS_PER_SECOND),
		.tv_nsec = (long)(interval_ns % NS_PER_SECOND),
	};
	struct itimerspec value = {interval, interval};

	return timer_settime(clock->timer, 0, &value, NULL);
}

bool sample_clock_can_send(void)
{
	struct sample_clock clock = {.kind = SAMPLE_CLOCK_PERF,
	                             .interval_ns = SAMPLE_INTERVAL_NS_MAX,
	                             .fd = -1};

	if (open_timer(&clock, CLOCK_MONOTONIC, gettid()) == 0) {
		timer_delete(clock.timer);
		return true;
	}
	if (open_perf_clock(&clock, gettid()) < 0)
		return false;
	close(clock.fd);
	return true;
}

/* ---- process timer ------------------------------------------------------ */

static struct timeval process_timer_interval(uint64_t interval_ns)
{
	uint64_t interval_us = (interval_ns + NS_PER_US - 1) / NS_PER_US;

	return (struct timeval){
		.tv_sec = (time_t)(interval_us / 1000000),
		.tv_usec = (suseconds_t)(interval_us % 1000000),
	};
}

static int set_process_timer(uint64_t interval_ns, struct itimerval *previous)
{
	struct timeval interval = process_timer_interval(interval_ns);
	struct itimerval value = {interval, interval};

	return setitimer(ITIMER_PROF, &value, previous);
}

/* The process has only one, which the host may have set meanwhile. */
static bool process_timer_has(uint64_t interval_ns)
{
	struct timeval interval = process_timer_interval(interval_ns);
	struct itimerval value;

	return getitimer(ITIMER_PROF, &value) == 0 &&
	       value.it_interval.tv_sec == interval.tv_sec &&
	       value.it_interval.tv_usec == interval.tv_usec;
}

/* From one interval to another one; 0: it stands still. */
static int change_process_timer(uint64_t from_ns, uint64_t to_ns)
{
	return process_timer_has(from_ns) ? set_process_timer(to_ns, NULL) : 0;
}

/* ---- all kinds ---------------------------------------------------------- */

static const char *const kind_calls[] = {
	[SAMPLE_CLOCK_PERF] = "perf_event_open",
	[SAMPLE_CLOCK_THREAD_TIMER] = "timer_create",
	[SAMPLE_CLOCK_PROCESS_TIMER] = "setitimer",
	[SAMPLE_CLOCK_WALL_TIMER] = "timer_create",
	[SAMPLE_CLOCK_EVENT] = "perf_event_open",
};

static int open_kind(struct sample_clock *clock, pid_t thread_id)
{
	struct itimerval current;

	switch (clock->kind) {
	case SAMPLE_CLOCK_PERF:
	case SAMPLE_CLOCK_EVENT:
		return open_perf_clock(clock, thread_id);
	case SAMPLE_CLOCK_THREAD_TIMER:
		return open_timer(clock, thread_cpu_clock(thread_id),
		                  thread_id);
	case SAMPLE_CLOCK_WALL_TIMER:
		return open_timer(clock, CLOCK_MONOTONIC, thread_id);
	case SAMPLE_CLOCK_PROCESS_TIMER:
		if (clock_signal != SIGPROF)
			return -EINVAL;
		return getitimer(ITIMER_PROF, &current) < 0 ? -errno : 0;
	}
	return -EINVAL;
}

static int last_kind(int first_kind)
{
	return first_kind < SAMPLE_CLOCK_PROCESS_TIMER
	               ? SAMPLE_CLOCK_PROCESS_TIMER
	               : first_kind;
}

int sample_clock_open(struct sample_clock *clock,
                      enum sample_clock_kind first_kind, pid_t thread_id,
                      uint64_t interval_ns, struct error *error)
{
	char tried[256] = "";
	size_t used = 0;
	int code = -EINVAL;

	memset(clock, 0, sizeof(*clock));
	clock->thread_id = thread_id;
	clock->interval_ns = interval_ns;
	clock->fd = -1;
	for (int kind = first_kind; kind <= last_kind(first_kind); kind++) {
		clock->kind = (enum sample_clock_kind)kind;
		code = open_kind(clock, thread_id);
		if (code == 0)
			return 0;
		used += (size_t)snprintf(tried + used, sizeof(tried) - used,
		                         "%s%s: %s", used > 0 ? "; " : "",
		                         kind_calls[kind], strerror(-code));
		if (used >= sizeof(tried))
			break;
	}
	return error_set(error, PROFILE_ERRIO, -code,
	                 "no clock to sample by (%s); allow one of these calls "
	                 "to the process",
	                 tried);
}

int sample_clock_open_event(struct sample_clock *clock,
                            const struct sample_event *event, pid_t thread_id,
                            uint64_t interval, struct error *error)
{
	int code;

	memset(clock, 0, sizeof(*clock));
	clock->thread_id = thread_id;
	clock->kind = SAMPLE_CLOCK_EVENT;
	clock->event = *event;
	clock->interval_ns = interval;
	clock->fd = -1;
	code = open_kind(clock, thread_id);
	if (code == 0)
		return 0;
	return error_set(error, PROFILE_ERRIO, -code,
	                 "the event %s cannot be counted: %s", event->name,
	                 strerror(-code));
}

bool sample_clock_is_lost(const struct sample_clock *clock)
{
	uint64_t id;

	return clock->fd >= 0 &&
	       (ioctl(clock->fd, PERF_EVENT_IOC_ID, &id) < 0 ||
	        id != clock->event_id);
}

/* Of a timer. */
static uint64_t ticking_ns(const struct sample_clock *clock)
{
	return clock->is_muted ? 0 : clock->interval_ns;
}

int sample_clock_start(struct sample_clock *clock, struct error *error)
{
	int result = -1;

	switch (clock->kind) {
	case SAMPLE_CLOCK_PERF:
	case SAMPLE_CLOCK_EVENT:
		result = ioctl(clock->fd, PERF_EVENT_IOC_ENABLE, 0);
		break;
	case SAMPLE_CLOCK_THREAD_TIMER:
	case SAMPLE_CLOCK_WALL_TIMER:
		result = set_timer(clock, ticking_ns(clock));
		break;
	case SAMPLE_CLOCK_PROCESS_TIMER:
		result = clock->is_muted ? 0
		                         : set_process_timer(clock->interval_ns,
		                                             &clock->previous);
		break;
	}
	if (result < 0)
		return error_set(error, PROFILE_ERRIO, errno,
		                 "the %s does not start: %s",
		                 sample_clock_name(clock), strerror(errno));
	return 0;
}

int sample_clock_set_interval(struct sample_clock *clock, uint64_t interval_ns)
{
	uint64_t before_ns = ticking_ns(clock);

	clock->interval_ns = interval_ns;
	switch (clock->kind) {
	case SAMPLE_CLOCK_PERF:
	case SAMPLE_CLOCK_EVENT:
		if (sample_clock_is_lost(clock))
			return -EBADF;
		return ioctl(clock->fd, PERF_EVENT_IOC_PERIOD, &interval_ns) < 0
		               ? -errno
		               : 0;
	case SAMPLE_CLOCK_THREAD_TIMER:
	case SAMPLE_CLOCK_WALL_TIMER:
		return set_timer(clock, ticking_ns(clock)) < 0 ? -errno : 0;
	case SAMPLE_CLOCK_PROCESS_TIMER:
		return change_process_timer(before_ns, ticking_ns(clock)) < 0
		               ? -errno
		               : 0;
	}
	return -EINVAL;
}

void sample_clock_mute(struct sample_clock *clock, bool mute)
{
	uint64_t before_ns = ticking_ns(clock);

	if (mute == clock->is_muted)
		return;
	clock->is_muted = mute;
	switch (clock->kind) {
	case SAMPLE_CLOCK_PERF:
	case SAMPLE_CLOCK_EVENT:
		if (!sample_clock_is_lost(clock))
			fcntl(clock->fd, F_SETFL,
			      (mute ? 0 : O_ASYNC) | O_NONBLOCK);
		break;
	case SAMPLE_CLOCK_THREAD_TIMER:
	case SAMPLE_CLOCK_WALL_TIMER:
		set_timer(clock, ticking_ns(clock));
		break;
	case SAMPLE_CLOCK_PROCESS_TIMER:
		change_process_timer(before_ns, ticking_ns(clock));
		break;
	}
}

uint64_t sample_clock_position(const struct sample_clock *clock)
{
	uint64_t count = 0;

	switch (clock->kind) {
	case SAMPLE_CLOCK_PERF:
	case SAMPLE_CLOCK_EVENT:
		if (read(clock->fd, &count, sizeof(count)) != sizeof(count))
			return 0;
		return count;
	case SAMPLE_CLOCK_THREAD_TIMER:
		return clock_ns(thread_cpu_clock(clock->thread_id));
	case SAMPLE_CLOCK_WALL_TIMER:
		return clock_ns(CLOCK_MONOTONIC);
	case SAMPLE_CLOCK_PROCESS_TIMER:
		return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	}
	return 0;
}

void sample_clock_stop(struct sample_clock *clock)
{
	switch (clock->kind) {
	case SAMPLE_CLOCK_PERF:
	case SAMPLE_CLOCK_EVENT:
		if (!sample_clock_is_lost(clock))
			ioctl(clock->fd, PERF_EVENT_IOC_DISABLE, 0);
		break;
	case SAMPLE_CLOCK_THREAD_TIMER:
	case SAMPLE_CLOCK_WALL_TIMER:
		set_timer(clock, 0);
		break;
	case SAMPLE_CLOCK_PROCESS_TIMER:
		if (!clock->is_muted && process_timer_has(clock->interval_ns))
			setitimer(ITIMER_PROF, &clock->previous, NULL);
		break;
	}
}

void sample_clock_close(struct sample_clock *clock)
{
	if (clock->kind == SAMPLE_CLOCK_THREAD_TIMER ||
	    clock->kind == SAMPLE_CLOCK_WALL_TIMER)
		timer_delete(clock->timer);
	if (clock->kernel_ring)
		munmap(clock->kernel_ring, kernel_ring_bytes());
	sample_clock_abandon(clock);
}

/* Timers are not inherited, nor is the ring (VM_DONTCOPY); the descriptor is, and
 * stays the parent's. */
void sample_clock_abandon(struct sample_clock *clock)
{
	if (clock->fd >= 0 && !sample_clock_is_lost(clock))
		close(clock->fd);
	clock->fd = -1;
	clock->kernel_ring = NULL;
}

const char *sample_clock_name(const struct sample_clock *clock)
{
	switch (clock->kind) {
	case SAMPLE_CLOCK_PERF:
		return clock->user_only ? "perf task clock (user code only)"
		                        : "perf task clock";
	case SAMPLE_CLOCK_THREAD_TIMER:
		return "thread CPU timer";
	case SAMPLE_CLOCK_PROCESS_TIMER:
		return "process timer";
	case SAMPLE_CLOCK_WALL_TIMER:
		return "wall clock timer";
	case SAMPLE_CLOCK_EVENT:
		return clock->event.name;
	}
	return "no clock";
}
