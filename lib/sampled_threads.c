// SPDX-License-Identifier: MIT
/*
 * Sampled threads: the list of them, and the look into /proc/self/task. Ordinary
 * code, on the thread that starts or stops the session and on the writer's.
 */
#include "sampled_threads.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lmisclib.h"
#include "load_sig.h"
#include "sample_signal.h"

#define TASK_DIRECTORY "/proc/self/task"

/* Of threads that were not there at the start. */
#define LATE_RING_BYTES (1u << 20)

/* Looks that miss a thread which has ended. */
#define MISSED_COUNT_ENDED 2

/* Of a thread at which the clock ticks in vain, as of the last look at it. */
struct silence {
	enum lost_reason reason; /* why no signal may come, 0: none */
	uint64_t heard_count;    /* signals that have come */
	uint64_t position; /* of the clock, as far as losses are counted */
};

struct sampled_thread {
	struct sampled_thread *next;
	pid_t thread_id;
	uint64_t seen_round;       /* the look that has last seen it */
	unsigned int missed_count; /* looks since then */
	bool ended;
	bool clock_open;
	bool is_blocking; /* it blocked the signal at the last look */
	bool has_kernel;  /* its samples have the kernel's frames */
	struct silence silence;
	uint64_t told_interval_ns; /* what the dump says */
	struct sample_clock clock;
	struct sampler *sampler; /* NULL: it cannot be sampled */
};

struct sampled_threads {
	struct sampled_threads_options options;
	_Atomic uint32_t last_symbol_id;
	uint64_t foreign_at_start;
	pid_t spared_thread_id; /* 0: none */

	pthread_mutex_t lock; /* guards the list and ended_counters */
	struct sampled_thread *first;
	struct sampler_counters ended_counters;
	uint64_t round;
	size_t mask_turn; /* number of the thread whose mask is looked at next */
	bool running;
	bool disabled;
	bool is_replaced; /* the signal's handler, at the last look */
};

/* ---- one thread ------------------------------------------------------------ */

static int open_sampler(struct sampled_threads *threads,
                        struct sampled_thread *thread, size_t ring_bytes,
                        struct error *error)
{
	struct sampler_options options = threads->options.sampler;

	options.thread_id = (uint32_t)thread->thread_id;
	options.ring_bytes = ring_bytes;
	options.clock = &thread->clock;
	options.last_symbol_id = &threads->last_symbol_id;
	thread->sampler = sampler_open(&options, error);
	return thread->sampler ? 0 : -1;
}

static bool open_clock_with_kernel(const struct sampled_threads *threads,
                                   struct sampled_thread *thread,
                                   struct error *error)
{
	const struct sampled_threads_options *options = &threads->options;
	bool by_event = options->first_clock == SAMPLE_CLOCK_EVENT;

	thread->clock_open =
		options->kernel != KERNEL_FRAMES_OFF &&
		sample_clock_open_with_kernel(
			&thread->clock, by_event ? &options->event : NULL,
			thread->thread_id, options->interval_ns, error) == 0;
	thread->has_kernel = thread->clock_open;
	return thread->clock_open;
}

static int open_clock(const struct sampled_threads *threads,
                      struct sampled_thread *thread, struct error *error)
{
	const struct sampled_threads_options *options = &threads->options;
	int result;

	if (open_clock_with_kernel(threads, thread, error))
		return 0;
	if (options->kernel == KERNEL_FRAMES_NEEDED && thread == threads->first)
		return -1;
	if (options->first_clock == SAMPLE_CLOCK_EVENT)
		result = sample_clock_open_event(
			&thread->clock, &options->event, thread->thread_id,
			options->interval_ns, error);
	else
		result = sample_clock_open(&thread->clock, options->first_clock,
		                           thread->thread_id,
		                           options->interval_ns, error);
	thread->clock_open = result == 0;
	return result;
}

static int open_thread(struct sampled_threads *threads,
                       struct sampled_thread *thread, size_t ring_bytes,
                       struct error *error)
{
	if (open_clock(threads, thread, error) < 0)
		return -1;
	return open_sampler(threads, thread, ring_bytes, error);
}

static void close_clock(struct sampled_thread *thread)
{
	if (thread->clock_open)
		sample_clock_close(&thread->clock);
	thread->clock_open = false;
}

/* The process timer ticks for all threads: the first one's is enough. */
static bool has_clock_of_its_own(const struct sampled_threads *threads,
                                 const struct sampled_thread *thread)
{
	return thread == threads->first ||
	       thread->clock.kind != SAMPLE_CLOCK_PROCESS_TIMER;
}

static int start_thread(struct sampled_threads *threads,
                        struct sampled_thread *thread, struct error *error)
{
	if (sampler_attach(thread->sampler) < 0)
		return error_set(error, PROFILE_ERRUSE, EAGAIN,
		                 "no more than %d threads can be sampled at a "
		                 "time",
		                 SAMPLERS_MAX);
	if (!has_clock_of_its_own(threads, thread))
		return 0;
	return sample_clock_start(&thread->clock, error);
}

static void stop_thread(const struct sampled_threads *threads,
                        struct sampled_thread *thread)
{
	if (!thread->sampler)
		return;
	sampler_disable(thread->sampler);
	if (has_clock_of_its_own(threads, thread))
		sample_clock_stop(&thread->clock);
}

static void close_thread(struct sampled_thread *thread)
{
	if (thread->sampler)
		sampler_detach(thread->sampler);
	close_clock(thread);
	if (thread->sampler)
		sampler_close(thread->sampler);
	free(thread);
}

static struct sampled_thread *add_thread(struct sampled_threads *threads,
                                         pid_t thread_id)
{
	struct sampled_thread *thread = calloc(1, sizeof(*thread));
	struct sampled_thread **last = &threads->first;

	if (!thread)
		return NULL;
	thread->thread_id = thread_id;
	thread->clock.fd = -1;
	thread->seen_round = threads->round;
	thread->told_interval_ns = threads->options.interval_ns;
	while (*last)
		last = &(*last)->next;
	*last = thread;
	return thread;
}

static struct sampled_thread *find_thread(const struct sampled_threads *threads,
                                          pid_t thread_id)
{
	struct sampled_thread *thread = threads->first;

	while (thread && thread->thread_id != thread_id)
		thread = thread->next;
	return thread;
}

/* ---- the threads of the process -------------------------------------------- */

/* One that cannot be sampled, because it has just ended or descriptors have run
 * out, stays in the list without a sampler, and is counted. */
static void meet_thread(struct sampled_threads *threads, pid_t thread_id)
{
	struct sampled_thread *thread = find_thread(threads, thread_id);

	if (thread) {
		thread->seen_round = threads->round;
		return;
	}
	thread = add_thread(threads, thread_id);
	if (!thread || open_thread(threads, thread, LATE_RING_BYTES, NULL) < 0)
		return;
	if (threads->disabled)
		sampler_disable(thread->sampler);
	if (threads->running && start_thread(threads, thread, NULL) < 0)
		stop_thread(threads, thread);
}

/* The writer's thread is ours, as the spared one, and not what anybody wants to see. 0, or -errno:
 * the threads are not known then. */
static int look_at_threads(struct sampled_threads *threads,
                           pid_t writer_thread_id)
{
	DIR *directory = opendir(TASK_DIRECTORY);
	struct dirent *entry;

	if (!directory)
		return -errno;
	threads->round++;
	while ((entry = readdir(directory)) != NULL) {
		pid_t thread_id = (pid_t)atol(entry->d_name);

		if (thread_id > 0 && thread_id != writer_thread_id &&
		    thread_id != threads->spared_thread_id)
			meet_thread(threads, thread_id);
	}
	closedir(directory);
	return 0;
}

static void add_counters(struct sampler_counters *sum,
                         const struct sampler_counters *counters)
{
	sum->samples += counters->samples;
	for (size_t i = 0; i < STATE_COUNT; i++)
		sum->by_state[i] += counters->by_state[i];
	for (size_t i = 0; i < LOST_COUNT; i++)
		sum->lost[i] += counters->lost[i];
	for (size_t i = 0; i < MARKER_COUNT; i++)
		sum->markers[i] += counters->markers[i];
}

/* Signals that met no sampler are counted for the process, not for a thread. */
static void read_thread_counters(const struct sampled_thread *thread,
                                 struct sampler_counters *counters)
{
	memset(counters, 0, sizeof(*counters));
	if (!thread->sampler)
		return;
	sampler_read_counters(thread->sampler, counters);
	counters->lost[LOST_FOREIGN_THREAD] = 0;
}

static void remove_thread(struct sampled_threads *threads,
                          struct sampled_thread **link)
{
	struct sampled_thread *thread = *link;
	struct sampler_counters counters;

	*link = thread->next;
	read_thread_counters(thread, &counters);
	add_counters(&threads->ended_counters, &counters);
	close_thread(thread);
}

/* The first one stays: it stands for the session, and for the process timer. */
static void end_thread(struct sampled_threads *threads,
                       struct sampled_thread *thread)
{
	thread->ended = true;
	if (thread == threads->first || !thread->sampler)
		return;
	stop_thread(threads, thread);
	sampler_detach(thread->sampler);
}

/* /proc may leave out a thread that lives, while others come and go: one that is
 * missed twice has ended. What it has sampled is drained once more before it is
 * removed. */
static void let_go(struct sampled_threads *threads)
{
	struct sampled_thread **link = &threads->first;

	while (*link) {
		struct sampled_thread *thread = *link;

		if (thread->seen_round == threads->round && !thread->ended)
			thread->missed_count = 0;
		else
			thread->missed_count++;
		if (thread->missed_count == MISSED_COUNT_ENDED)
			end_thread(threads, thread);
		if (thread->missed_count > MISSED_COUNT_ENDED &&
		    thread != threads->first)
			remove_thread(threads, link);
		else
			link = &thread->next;
	}
}

/* Daemons close all descriptors when they start. No handler may be looking at the
 * clock meanwhile. */
static void renew_lost_clock(const struct sampled_threads *threads,
                             struct sampled_thread *thread)
{
	if (!thread->clock_open || !sample_clock_is_lost(&thread->clock))
		return;
	sampler_detach(thread->sampler);
	close_clock(thread);
	thread->silence = (struct silence){0};
	if (open_clock(threads, thread, NULL) == 0 &&
	    sampler_attach(thread->sampler) == 0)
		sample_clock_start(&thread->clock, NULL);
}

static uint64_t lengthened(uint64_t interval_ns, uint64_t needed_ns)
{
	while (interval_ns < needed_ns && interval_ns < SAMPLE_INTERVAL_NS_MAX)
		interval_ns *= 2;
	return interval_ns;
}

/* Only a clock that counts time says what share of it the handler takes. Doubled
 * so that there are few changes to tell of; never shortened again, so that the
 * interval does not swing. */
static void limit_overhead(const struct sampled_threads *threads,
                           struct sampled_thread *thread)
{
	uint64_t handler_ns = sampler_handler_ns(thread->sampler);
	uint64_t interval_ns = thread->clock.interval_ns;

	if (threads->options.overhead_permille == 0 ||
	    thread->clock.kind == SAMPLE_CLOCK_EVENT)
		return;
	interval_ns = lengthened(interval_ns,
	                         handler_ns * 1000 /
	                                 threads->options.overhead_permille);
	if (interval_ns != thread->clock.interval_ns)
		sample_clock_set_interval(&thread->clock, interval_ns);
}

/* Has the host blocked the clock's signal on this thread? Then no sample comes until
 * it is unblocked, and nobody else could tell. */
static bool blocks_signal(pid_t thread_id)
{
	unsigned long long blocked = 0;
	char line[256], path[64];
	FILE *status;

	snprintf(path, sizeof(path), TASK_DIRECTORY "/%d/status",
	         (int)thread_id);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status))
		if (strncmp(line, "SigBlk:", 7) == 0)
			blocked = strtoull(line + 7, NULL, 16);
	if (status)
		fclose(status);
	return (blocked >> (sample_clock_signal() - 1) & 1) != 0;
}

/* The process timer's come to any thread. */
static uint64_t heard_count(const struct sampled_threads *threads,
                            const struct sampled_thread *thread)
{
	uint64_t count = 0;

	if (thread->clock.kind != SAMPLE_CLOCK_PROCESS_TIMER)
		return sampler_heard_count(thread->sampler);
	for (thread = threads->first; thread; thread = thread->next)
		if (thread->sampler)
			count += sampler_heard_count(thread->sampler);
	return count + sampler_foreign_signals();
}

static void count_silence(struct sampled_thread *thread)
{
	struct silence *silence = &thread->silence;
	uint64_t interval_ns = thread->clock.interval_ns;
	uint64_t position = sample_clock_position(&thread->clock);
	uint64_t ticks = 0;

	if (position > silence->position)
		ticks = (position - silence->position) / interval_ns;
	/* One may be on its way. */
	if (ticks < 2)
		return;
	silence->position += ticks * interval_ns;
	sampler_count_lost(thread->sampler, silence->reason, ticks);
	/* They are the host's handler's, which waits for none of them. */
	if (silence->reason == LOST_SIGNAL_REPLACED)
		sample_clock_mute(&thread->clock, true);
}

/* A handler that the host has put over ours may call it, and a signal is blocked
 * for a moment often: nothing is lost where signals come all the same. */
static void look_at_silence(const struct sampled_threads *threads,
                            struct sampled_thread *thread,
                            enum lost_reason reason)
{
	struct silence *silence = &thread->silence;
	uint64_t count = 0;

	if (reason != 0) {
		count = heard_count(threads, thread);
		if (reason == silence->reason &&
		    count == silence->heard_count) {
			count_silence(thread);
			return;
		}
	}
	sample_clock_mute(&thread->clock, false);
	*silence = (struct silence){
		.reason = reason,
		.heard_count = count,
	};
	if (reason != 0)
		silence->position = sample_clock_position(&thread->clock);
}

/* One thread at a time, since there may be hundreds. */
static struct sampled_thread *look_at_next_mask(struct sampled_threads *threads)
{
	struct sampled_thread *thread = threads->first;

	for (size_t i = threads->mask_turn++; i > 0 && thread; i--)
		thread = thread->next;
	if (!thread) {
		threads->mask_turn = 1;
		thread = threads->first;
	}
	if (thread->sampler && !thread->ended)
		thread->is_blocking = blocks_signal(thread->thread_id);
	return thread;
}

/* Do signals come to the threads, if not blocked on those but masked? */
static void look_at_signals(struct sampled_threads *threads,
                            const struct sampled_thread *masked)
{
	bool was_replaced = threads->is_replaced;

	threads->is_replaced = !sample_signal_is_ours();
	for (struct sampled_thread *thread = threads->first; thread;
	     thread = thread->next) {
		enum lost_reason reason = 0;

		if (!thread->sampler || thread->ended ||
		    !has_clock_of_its_own(threads, thread) ||
		    (thread != masked && !threads->is_replaced &&
		     !was_replaced))
			continue;
		if (threads->is_replaced)
			reason = LOST_SIGNAL_REPLACED;
		else if (thread->is_blocking)
			reason = LOST_SIGNAL_BLOCKED;
		look_at_silence(threads, thread, reason);
	}
}

/* In mode D nobody else looks. */
static void look_at_first(struct sampled_threads *threads)
{
	if (!threads->running)
		return;
	threads->first->is_blocking = blocks_signal(threads->first->thread_id);
	look_at_signals(threads, threads->first);
}

static void look_after_clocks(struct sampled_threads *threads)
{
	for (struct sampled_thread *thread = threads->first; thread;
	     thread = thread->next) {
		if (!thread->sampler || thread->ended ||
		    !has_clock_of_its_own(threads, thread))
			continue;
		renew_lost_clock(threads, thread);
		limit_overhead(threads, thread);
	}
}

void sampled_threads_refresh(struct sampled_threads *threads)
{
	pthread_mutex_lock(&threads->lock);
	if (threads->options.all_threads && threads->running &&
	    look_at_threads(threads, gettid()) == 0)
		let_go(threads);
	if (threads->running) {
		look_after_clocks(threads);
		look_at_signals(threads, look_at_next_mask(threads));
	}
	pthread_mutex_unlock(&threads->lock);
}

uint32_t sampled_threads_next_change(struct sampled_threads *threads,
                                     uint64_t *interval_ns)
{
	for (struct sampled_thread *thread = threads->first; thread;
	     thread = thread->next) {
		if (!thread->sampler ||
		    thread->told_interval_ns == thread->clock.interval_ns)
			continue;
		thread->told_interval_ns = thread->clock.interval_ns;
		*interval_ns = thread->told_interval_ns;
		return (uint32_t)thread->thread_id;
	}
	return 0;
}

void sampled_threads_begin_dump(struct sampled_threads *threads)
{
	for (struct sampled_thread *thread = threads->first; thread;
	     thread = thread->next)
		thread->told_interval_ns = threads->options.interval_ns;
}

/* ---- opening and closing ---------------------------------------------------- */

static int add_first(struct sampled_threads *threads, pid_t thread_id,
                     struct error *error)
{
	struct sampled_thread *thread = add_thread(threads, thread_id);

	if (!thread)
		return error_set(error, PROFILE_ERRMEM, ENOMEM,
		                 "no memory for the threads to sample");
	return open_thread(threads, thread, SAMPLER_RING_BYTES, error);
}

/* The first thread of the process that can be sampled; its main thread may have
 * ended. */
static int add_first_of_others(struct sampled_threads *threads,
                               struct error *error)
{
	DIR *directory = opendir(TASK_DIRECTORY);
	struct dirent *entry;
	int result = -1;

	threads->spared_thread_id = gettid();
	error_set(error, PROFILE_ERRUSE, EINVAL,
	          "the signal of the samples is blocked on all threads; choose "
	          "another one by the option signal");
	while (result < 0 && directory &&
	       (entry = readdir(directory)) != NULL) {
		pid_t thread_id = (pid_t)atol(entry->d_name);

		if (thread_id <= 0 || thread_id == gettid() ||
		    blocks_signal(thread_id))
			continue;
		result = add_first(threads, thread_id, error);
		if (result < 0 && threads->first)
			remove_thread(threads, &threads->first);
	}
	if (directory)
		closedir(directory);
	return result;
}

static int open_first(struct sampled_threads *threads, struct error *error)
{
	int code;

	if (threads->options.spares_caller)
		code = add_first_of_others(threads, error);
	else
		code = add_first(threads, gettid(), error);
	if (code < 0)
		return -1;
	if (!threads->options.all_threads)
		return 0;
	code = look_at_threads(threads, 0);
	if (code < 0)
		return error_set(error, PROFILE_ERRUSE, -code,
		                 "scope \"process\" finds threads in "
		                 "%s, which cannot be read: %s",
		                 TASK_DIRECTORY, strerror(-code));
	return 0;
}

struct sampled_threads *
sampled_threads_open(const struct sampled_threads_options *options,
                     struct error *error)
{
	struct sampled_threads *threads = calloc(1, sizeof(*threads));

	if (!threads) {
		error_set(error, PROFILE_ERRMEM, ENOMEM,
		          "no memory for the threads to sample");
		return NULL;
	}
	threads->options = *options;
	threads->foreign_at_start = sampler_foreign_signals();
	pthread_mutex_init(&threads->lock, NULL);
	if (open_first(threads, error) < 0) {
		sampled_threads_close(threads);
		return NULL;
	}
	return threads;
}

int sampled_threads_start(struct sampled_threads *threads, struct error *error)
{
	struct sampled_thread *thread;
	int result;

	pthread_mutex_lock(&threads->lock);
	threads->running = true;
	result = start_thread(threads, threads->first, error);
	for (thread = threads->first->next; thread && result == 0;
	     thread = thread->next)
		if (thread->sampler && start_thread(threads, thread, NULL) < 0)
			stop_thread(threads, thread);
	pthread_mutex_unlock(&threads->lock);
	return result;
}

void sampled_threads_stop(struct sampled_threads *threads)
{
	struct sampled_thread *thread;

	pthread_mutex_lock(&threads->lock);
	look_at_first(threads);
	threads->running = false;
	for (thread = threads->first; thread; thread = thread->next) {
		stop_thread(threads, thread);
		if (thread->sampler)
			sampler_detach(thread->sampler);
		close_clock(thread);
	}
	pthread_mutex_unlock(&threads->lock);
}

void sampled_threads_pause(struct sampled_threads *threads, bool pause)
{
	struct sampled_thread *thread;

	pthread_mutex_lock(&threads->lock);
	threads->running = !pause;
	for (thread = threads->first; thread; thread = thread->next) {
		if (!thread->clock_open ||
		    !has_clock_of_its_own(threads, thread))
			continue;
		if (pause)
			sample_clock_stop(&thread->clock);
		else
			sample_clock_start(&thread->clock, NULL);
	}
	pthread_mutex_unlock(&threads->lock);
}

void sampled_threads_close(struct sampled_threads *threads)
{
	struct sampled_thread *thread, *next;

	for (thread = threads->first; thread; thread = next) {
		next = thread->next;
		close_thread(thread);
	}
	pthread_mutex_destroy(&threads->lock);
	free(threads);
}

void sampled_threads_abandon(struct sampled_threads *threads)
{
	for (struct sampled_thread *thread = threads->first; thread;
	     thread = thread->next) {
		if (thread->clock_open)
			sample_clock_abandon(&thread->clock);
		if (thread->sampler)
			load_faults_release();
	}
}

/* ---- questions --------------------------------------------------------------- */

struct sampler *sampled_threads_at(struct sampled_threads *threads,
                                   size_t index)
{
	for (struct sampled_thread *thread = threads->first; thread;
	     thread = thread->next)
		if (thread->sampler && index-- == 0)
			return thread->sampler;
	return NULL;
}

void sampled_threads_disable(struct sampled_threads *threads)
{
	struct sampled_thread *thread;

	pthread_mutex_lock(&threads->lock);
	threads->disabled = true;
	for (thread = threads->first; thread; thread = thread->next)
		if (thread->sampler)
			sampler_disable(thread->sampler);
	pthread_mutex_unlock(&threads->lock);
}

void sampled_threads_read_counters(struct sampled_threads *threads,
                                   struct sampler_counters *counters)
{
	struct sampler_counters one;
	struct sampled_thread *thread;

	pthread_mutex_lock(&threads->lock);
	*counters = threads->ended_counters;
	for (thread = threads->first; thread; thread = thread->next) {
		read_thread_counters(thread, &one);
		add_counters(counters, &one);
	}
	pthread_mutex_unlock(&threads->lock);
	counters->lost[LOST_FOREIGN_THREAD] =
		sampler_foreign_signals() - threads->foreign_at_start;
}

const struct sample_clock *
sampled_threads_clock(const struct sampled_threads *threads)
{
	return &threads->first->clock;
}

static void add_facts(const struct sampled_thread *thread,
                      struct sampled_threads_facts *facts)
{
	uint64_t handler_ns = sampler_handler_ns(thread->sampler);

	facts->thread_count++;
	if (thread->has_kernel)
		facts->kernel_count++;
	if (thread->is_blocking)
		facts->blocking_count++;
	facts->held_bytes += sampler_held_bytes(thread->sampler);
	if (facts->interval_ns < thread->clock.interval_ns)
		facts->interval_ns = thread->clock.interval_ns;
	if (facts->handler_ns < handler_ns)
		facts->handler_ns = handler_ns;
}

void sampled_threads_read_facts(struct sampled_threads *threads,
                                struct sampled_threads_facts *facts)
{
	struct sampled_thread *thread;

	memset(facts, 0, sizeof(*facts));
	pthread_mutex_lock(&threads->lock);
	look_at_first(threads);
	facts->is_replaced = threads->is_replaced;
	for (thread = threads->first; thread; thread = thread->next) {
		if (thread->sampler) {
			add_facts(thread, facts);
		} else if (!thread->ended) {
			facts->missed_count++;
		}
	}
	pthread_mutex_unlock(&threads->lock);
}
