// SPDX-License-Identifier: MIT
/*
 * Sample clock: sends a signal to one thread each interval, of its CPU time if
 * nothing else is asked for. Opened, started and stopped outside the handler.
 *
 * CPU time, in this order, the first that the system allows:
 *   perf task clock   perf_event_open(2); honours 0.1 ms
 *   thread CPU timer  timer_create(2); no faster than the kernel's tick
 *   process timer     setitimer(2) ITIMER_PROF; the same, for the whole process
 *
 * Others, which nothing stands in for:
 *   wall clock        timer_create(2) CLOCK_MONOTONIC: blocked time counts, too
 *   an event          perf_event_open(2): so many cycles, page faults, …
 */
#ifndef LIB_CLOCK_H
#define LIB_CLOCK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>

#include "error.h"

/* The signal of all clocks of the process, SIGPROF unless another one is set. It
 * changes only while no clock is open. The process timer has SIGPROF alone; is there
 * another clock here? */
int sample_clock_signal(void);
void sample_clock_set_signal(int signal);
bool sample_clock_can_send(void);

enum sample_clock_kind {
	SAMPLE_CLOCK_PERF,
	SAMPLE_CLOCK_THREAD_TIMER,
	SAMPLE_CLOCK_PROCESS_TIMER,
	SAMPLE_CLOCK_WALL_TIMER,
	SAMPLE_CLOCK_EVENT,
};

/* An event of perf_event_open(2) that samples are counted by. */
struct sample_event {
	char name[64];   /* as perf list has it */
	uint32_t type;   /* PERF_TYPE_* */
	uint64_t config; /* of that type */
	uint64_t count;  /* usual number of events between two samples */
};

/* Shortest interval that the kernel keeps, longest that makes sense. */
#define SAMPLE_INTERVAL_NS_MIN UINT64_C(10000)
#define SAMPLE_INTERVAL_NS_MAX UINT64_C(3600000000000)

struct sample_clock {
	enum sample_clock_kind kind;
	uint64_t interval_ns;      /* SAMPLE_CLOCK_EVENT: events, not ns */
	struct sample_event event; /* SAMPLE_CLOCK_EVENT */
	int fd;                    /* SAMPLE_CLOCK_PERF and _EVENT, else -1 */
	uint64_t
		event_id; /* the kernel's, of fd: tells whether it is still ours */
	bool user_only; /* the same: no right to sample system calls */
	/* What the kernel tells of each overflow: mapped from fd if the kernel's
	 * frames are wanted, else NULL. Not there in a child of fork(2). */
	void *kernel_ring;
	timer_t timer;   /* SAMPLE_CLOCK_THREAD_TIMER and _WALL_TIMER */
	pid_t thread_id; /* that the signals go to */
	bool is_muted;
	struct itimerval previous; /* SAMPLE_CLOCK_PROCESS_TIMER: what it
				    * replaced, put back when it stops,
				    * unless the host has set it since */
};

/*
 * For the thread thread_id of this process. Tries first_kind and then those
 * after it: production code says SAMPLE_CLOCK_PERF. Does not tick before
 * sample_clock_start(). On failure names every way tried and why it failed.
 */
int sample_clock_open(struct sample_clock *clock,
                      enum sample_clock_kind first_kind, pid_t thread_id,
                      uint64_t interval_ns, struct error *error);
int sample_clock_start(struct sample_clock *clock, struct error *error);

/* The same for a clock that counts events, interval of them between samples. */
int sample_clock_open_event(struct sample_clock *clock,
                            const struct sample_event *event, pid_t thread_id,
                            uint64_t interval, struct error *error);

/* By events of perf with the kernel's part of each stack. event NULL: by CPU time.
 * On failure, in *error too, neither of the ways above is tried instead. */
int sample_clock_open_with_kernel(struct sample_clock *clock,
                                  const struct sample_event *event,
                                  pid_t thread_id, uint64_t interval,
                                  struct error *error);

/* Has the host closed the descriptor, as daemons do with all of them? Then the
 * clock has ended, and the number may be that of a file of the host. */
bool sample_clock_is_lost(const struct sample_clock *clock);

/* Takes effect at once, and once more at sample_clock_start(). */
int sample_clock_set_interval(struct sample_clock *clock, uint64_t interval_ns);

/* The event of that name: "cycles", "page-faults", "sched:sched_switch", … 0, or
 * -1 with the names that this system has in *error. */
int sample_event_find(const char *name, struct sample_event *event,
                      struct error *error);

/* Sends no signal, but goes on counting, or sends again. */
void sample_clock_mute(struct sample_clock *clock, bool mute);

/* How far the clock has come, in units of its interval, since some moment. */
uint64_t sample_clock_position(const struct sample_clock *clock);

/* Signals sent before may still be pending when these return: the
 * handler must stay until they are drained. */
void sample_clock_stop(struct sample_clock *clock);
void sample_clock_close(struct sample_clock *clock);

/* In the child of a fork: lets go of what the child inherited, without any
 * effect on the parent's clock. */
void sample_clock_abandon(struct sample_clock *clock);

/* "perf task clock", "perf task clock (user code only)", "thread CPU timer",
 * "process timer", "wall clock timer", or the name of the event. */
const char *sample_clock_name(const struct sample_clock *clock);

/* The kernel's default is the most. */
#define KERNEL_FRAMES_MAX 127

/* One overflow of the clock. */
struct kernel_stack {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t count;   /* 0: user code was running */
	bool is_last;     /* there is no later one */
	uint64_t lost;    /* overflows before it that found the ring full */
	uint64_t frames[KERNEL_FRAMES_MAX]; /* innermost first; of callers
	                                     * return address - 1 */
};

/* The oldest that was not read yet; false: none, but lost is told. Only in the handler of the clock's
 * thread. Async-signal-safe. */
bool sample_clock_next_kernel(const struct sample_clock *clock,
                              struct kernel_stack *stack);

/* Did this clock send the signal? Async-signal-safe. */
bool sample_clock_sent(const struct sample_clock *clock, const siginfo_t *info);

#endif
