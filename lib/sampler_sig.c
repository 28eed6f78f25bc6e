// SPDX-License-Identifier: MIT
/*
 * Sampler: the SIGPROF handler and what it works on. All but open, attach and
 * close runs in the signal handler, on the thread that is sampled.
 */
#include "sampler_sig.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "host/unwind_table.h"
#include "load_sig.h"
#include "lua_symbols_sig.h"
#include "sample.h"
#include "walk_sig.h"
#include "../perfmap/beacon_sig.h"

/* Half a second of 10 kHz with deep stacks; the writer wakes far earlier. */
#define RING_BYTES (4u << 20)

/* Of a stack with more frames, so many of the leaf's side are kept; the rest
 * of the room is for the root's side and one marker between. */
#define FRAMES_HEAD 384
#define FRAMES_TAIL (SAMPLE_FRAMES_MAX - FRAMES_HEAD - 1)

/* perf reads 127 addresses unless it is asked for more. */
#define BEACON_ADDRESSES_MAX SAMPLE_FRAMES_MAX

/* Ranges of the arena for library functions and markers: one each. */
#define ARENA_SMALL_RANGE_BYTES 16

/* The documented contract of custom backtracers: frames up to this number are
 * taken for the profiler's own. */
#define BACKTRACER_SKIPPED_FRAMES 6

/* The frames of a sample while it is taken: the first FRAMES_HEAD in place,
 * behind them a ring of the last ones until finish_frames() puts it in order.
 * An address beside each frame stands for it in perf. */
struct frame_list {
	struct frame frames[SAMPLE_FRAMES_MAX];
	uint64_t addresses[SAMPLE_FRAMES_MAX];
	struct frame tail_frames[FRAMES_TAIL];
	uint64_t tail_addresses[FRAMES_TAIL];
	uint32_t count; /* frames offered */
	bool has_guest;
	struct guest_frame top; /* innermost guest frame, if has_guest */
};

struct sampler {
	struct sampler_options options;
	uint32_t thread_id;
	/* Set from any thread, seen by the next handler. */
	_Atomic bool disabled;
	_Atomic bool in_handler;

	/* Written by the handler, read by anybody. */
	_Atomic uint64_t by_state[STATE_COUNT];
	_Atomic uint64_t lost[LOST_COUNT];
	_Atomic uint64_t markers[MARKER_COUNT];

	/* The handler's own. */
	struct ring ring;
	struct lua_symbols *symbols; /* NULL in mode D */
	struct walk walk;
	struct frame_list list;
	uint32_t markers_seen;       /* by this sample: a bit for each marker */
	bool ring_full;              /* this sample lacked room for a symbol */
	struct beacon_chain *beacon; /* NULL: perf is off */
};

/*
 * The one thing that the handler finds by itself: the sampler of its thread.
 * Initial-exec, so that reading it calls nothing; only a pointer, since the
 * loader has little room of this kind for libraries loaded late.
 */
static __thread struct sampler *own_sampler
	__attribute__((tls_model("initial-exec")));

/* Signals on threads without a sampler: the process timer does not care which
 * thread it interrupts. Since the last sampler_open(). */
static _Atomic uint64_t foreign_count;

static void count(_Atomic uint64_t *counter)
{
	atomic_store_explicit(
		counter,
		atomic_load_explicit(counter, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

/* --- outside the handler -------------------------------------------------- */

static void *map_memory(size_t bytes, struct error *error)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory != MAP_FAILED)
		return memory;
	error_set(error, PROFILE_ERRMEM, errno,
	          "out of memory for the sampler: %s", strerror(errno));
	return NULL;
}

static size_t beacon_bytes(void)
{
	return sizeof(struct beacon_chain) +
	       BEACON_ADDRESSES_MAX * sizeof(struct beacon_link);
}

static int open_recording(struct sampler *sampler, struct error *error)
{
	const struct sampler_options *options = &sampler->options;

	if (options->mode == LUAM_SYSPROF_DEFAULT)
		return 0;
	if (ring_open(&sampler->ring, RING_BYTES, error))
		return -1;
	sampler->symbols = lua_symbols_open(options->vm, &sampler->ring,
	                                    options->arena, error);
	if (!sampler->symbols)
		return -1;
	if (!options->arena)
		return 0;
	sampler->beacon = map_memory(beacon_bytes(), error);
	if (!sampler->beacon)
		return -1;
	sampler->beacon->capacity = BEACON_ADDRESSES_MAX;
	return 0;
}

struct sampler *sampler_open(const struct sampler_options *options,
                             struct error *error)
{
	struct sampler *sampler = map_memory(sizeof(*sampler), error);

	if (!sampler)
		return NULL;
	sampler->options = *options;
	sampler->thread_id = (uint32_t)gettid();
	if (load_faults_catch(error)) {
		munmap(sampler, sizeof(*sampler));
		return NULL;
	}
	if (open_recording(sampler, error)) {
		sampler_close(sampler);
		return NULL;
	}
	atomic_store(&foreign_count, 0);
	return sampler;
}

void sampler_attach(struct sampler *sampler)
{
	/* The handler runs on this thread: it sees the old or the new one. */
	*(struct sampler *volatile *)&own_sampler = sampler;
	atomic_signal_fence(memory_order_seq_cst);
}

void sampler_disable(struct sampler *sampler)
{
	atomic_store(&sampler->disabled, true);
}

/* Until a handler that is under way on the sampled thread has returned. */
static void wait_for_handler(struct sampler *sampler)
{
	static const struct timespec pause = {.tv_nsec = 10000};

	while (atomic_load(&sampler->in_handler))
		nanosleep(&pause, NULL);
}

void sampler_close(struct sampler *sampler)
{
	bool own_thread = sampler->thread_id == (uint32_t)gettid();

	sampler_disable(sampler);
	if (own_thread && own_sampler == sampler)
		sampler_attach(NULL);
	if (!own_thread)
		wait_for_handler(sampler);
	if (sampler->beacon)
		munmap(sampler->beacon, beacon_bytes());
	lua_symbols_close(sampler->symbols);
	if (sampler->ring.bytes)
		ring_close(&sampler->ring);
	load_faults_release();
	/* Another thread's pointer to it cannot be taken away: it stays there,
	 * disabled, for a late signal to find. */
	if (own_thread)
		munmap(sampler, sizeof(*sampler));
}

struct ring *sampler_ring(struct sampler *sampler)
{
	return sampler->ring.bytes ? &sampler->ring : NULL;
}

void sampler_read_counters(const struct sampler *sampler,
                           struct sampler_counters *counters)
{
	size_t i;

	memset(counters, 0, sizeof(*counters));
	for (i = 0; i < STATE_COUNT; i++) {
		counters->by_state[i] = atomic_load_explicit(
			&sampler->by_state[i], memory_order_relaxed);
		counters->samples += counters->by_state[i];
	}
	for (i = 0; i < LOST_COUNT; i++)
		counters->lost[i] = atomic_load_explicit(&sampler->lost[i],
		                                         memory_order_relaxed);
	counters->lost[LOST_FOREIGN_THREAD] = atomic_load(&foreign_count);
	for (i = 0; i < MARKER_COUNT; i++)
		counters->markers[i] = atomic_load_explicit(
			&sampler->markers[i], memory_order_relaxed);
}

/* --- inside the handler --------------------------------------------------- */

static void append(struct frame_list *list, const struct frame *frame,
                   uint64_t address)
{
	uint32_t place = list->count++;

	if (place < FRAMES_HEAD) {
		list->frames[place] = *frame;
		list->addresses[place] = address;
		return;
	}
	place = (place - FRAMES_HEAD) % FRAMES_TAIL;
	list->tail_frames[place] = *frame;
	list->tail_addresses[place] = address;
}

static void show_native(void *context, uint64_t address)
{
	struct sampler *sampler = context;
	struct frame frame = {.kind = FRAME_HOST, .value = address};

	if (sampler->options.mode == LUAM_SYSPROF_CALLGRAPH &&
	    !sampler->options.backtracer)
		append(&sampler->list, &frame, address);
}

static uint64_t marker_address(const struct sampler *sampler,
                               enum frame_marker marker)
{
	return sampler->options.marker_address +
	       ARENA_SMALL_RANGE_BYTES * (uint64_t)marker;
}

static void show_marker(void *context, enum frame_marker marker,
                        uint32_t frame_count)
{
	struct sampler *sampler = context;
	struct frame frame = {
		.kind = FRAME_MARKER, .value = marker, .line = frame_count};

	sampler->markers_seen |= 1u << marker;
	append(&sampler->list, &frame, marker_address(sampler, marker));
}

static void show_lua(struct sampler *sampler, const struct guest_frame *guest)
{
	struct frame frame = {.kind = FRAME_LUA, .line = guest->line};
	const struct known_prototype *known;

	if (!sampler->symbols)
		return;
	switch (lua_symbols_find(sampler->symbols, guest->prototype, &known)) {
	case SYMBOL_KNOWN:
		break;
	case SYMBOL_TABLE_FULL:
		show_marker(sampler, MARKER_SYMBOLS_FULL, 1);
		return;
	case SYMBOL_RING_FULL:
		sampler->ring_full = true;
		return;
	case SYMBOL_UNREADABLE:
		show_marker(sampler, MARKER_GUEST_BAD_FRAME, 1);
		return;
	}
	frame.value = known->id;
	if (guest->compiled)
		frame.flags = FRAME_FLAG_COMPILED;
	append(&sampler->list, &frame,
	       known_prototype_address(known, guest->line));
}

static void show_guest(void *context, const struct guest_frame *guest)
{
	struct sampler *sampler = context;
	struct frame_list *list = &sampler->list;
	struct frame frame = {.kind = FRAME_C, .value = guest->c_function};

	if (!list->has_guest)
		list->top = *guest;
	list->has_guest = true;
	if (guest->compiled)
		frame.flags = FRAME_FLAG_COMPILED;
	switch (guest->kind) {
	case GUEST_LUA_FUNCTION:
		show_lua(sampler, guest);
		break;
	case GUEST_C_FUNCTION:
		append(list, &frame, guest->c_function);
		break;
	case GUEST_FAST_FUNCTION:
		frame.kind = FRAME_FAST;
		frame.value = guest->fast_number;
		append(list, &frame,
		       sampler->options.fast_address +
		               ARENA_SMALL_RANGE_BYTES *
		                       (uint64_t)guest->fast_number);
		break;
	case GUEST_UNKNOWN_FUNCTION:
		show_marker(sampler, MARKER_GUEST_BAD_FRAME, 1);
		break;
	}
}

/* The function handed to a custom backtracer, which passes no context on. */
static void *show_backtraced(int frame_number, void *address)
{
	struct frame frame = {.kind = FRAME_HOST, .value = (uint64_t)address};
	struct sampler *sampler = own_sampler;

	if (frame_number > BACKTRACER_SKIPPED_FRAMES)
		append(&sampler->list, &frame, frame.value);
	return sampler;
}

/* While the interpreter or C code runs, the innermost function tells. */
static enum sample_state state_of_function(const struct frame_list *list,
                                           int32_t vmstate)
{
	if (!list->has_guest)
		return vmstate == ~VMSTATE_C ? STATE_CFUNC : STATE_INTERP;
	switch (list->top.kind) {
	case GUEST_LUA_FUNCTION:
		return STATE_LFUNC;
	case GUEST_FAST_FUNCTION:
		return STATE_FFUNC;
	case GUEST_C_FUNCTION:
		return STATE_CFUNC;
	case GUEST_UNKNOWN_FUNCTION:
		break;
	}
	return STATE_INTERP;
}

static enum sample_state state_of(const struct frame_list *list,
                                  const struct walk_facts *facts)
{
	switch (~facts->vmstate) {
	case VMSTATE_GC:
		return STATE_GC;
	case VMSTATE_EXIT:
		return STATE_EXIT;
	case VMSTATE_RECORD:
		return STATE_RECORD;
	case VMSTATE_OPT:
		return STATE_OPT;
	case VMSTATE_ASM:
		return STATE_ASM;
	}
	/* The state word lags behind at the edges of a trace. */
	if (facts->trace_number || facts->vmstate >= 0)
		return STATE_TRACE;
	return state_of_function(list, facts->vmstate);
}

/* Puts the tail behind the head, with a marker for what the ring has lost.
 * Returns how many frames there are. */
static uint32_t finish_frames(struct sampler *sampler)
{
	struct frame_list *list = &sampler->list;
	uint32_t end, lost = 0, count = FRAMES_HEAD, i;

	if (list->count <= FRAMES_HEAD)
		return list->count;
	end = list->count - FRAMES_HEAD;
	if (end > FRAMES_TAIL)
		lost = end - FRAMES_TAIL;
	if (lost) {
		list->frames[count] = (struct frame){.kind = FRAME_MARKER,
		                                     .value = MARKER_TRUNCATED,
		                                     .line = lost};
		list->addresses[count++] =
			marker_address(sampler, MARKER_TRUNCATED);
		sampler->markers_seen |= 1u << MARKER_TRUNCATED;
	}
	for (i = lost; i < end; i++) {
		list->frames[count] = list->tail_frames[i % FRAMES_TAIL];
		list->addresses[count++] =
			list->tail_addresses[i % FRAMES_TAIL];
	}
	return count;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) +
	       (uint64_t)now.tv_nsec;
}

/* Hands the sample to the writer. False if the ring has no room. */
static bool push_sample(struct sampler *sampler, const struct walk_facts *facts,
                        enum sample_state state, uint32_t frame_count)
{
	size_t frame_bytes = frame_count * sizeof(struct frame);
	struct sample *sample;
	uint32_t trace_symbol = 0;
	uint32_t trace_number = 0;

	if (sampler->ring_full)
		return false;
	if (state == STATE_TRACE) {
		trace_number = facts->trace_number ? facts->trace_number
		                                   : (uint32_t)facts->vmstate;
		if (lua_symbols_find_trace(sampler->symbols, trace_number,
		                           &trace_symbol) == SYMBOL_RING_FULL)
			return false;
	}
	sample = ring_reserve(&sampler->ring, sizeof(*sample) + frame_bytes);
	if (!sample)
		return false;
	*sample = (struct sample){
		.record = {(uint32_t)(sizeof(*sample) + frame_bytes),
	                   RING_SAMPLE},
		.time_ns = now_ns(),
		.coroutine = facts->thread,
		.thread_id = sampler->thread_id,
		.vm_number = facts->in_vm ? sampler->options.vm->number : 0,
		.trace_number = trace_number,
		.trace_symbol = trace_symbol,
		.frame_count = (uint16_t)frame_count,
		.state = (uint8_t)state,
	};
	memcpy(sample->frames, sampler->list.frames, frame_bytes);
	ring_commit(&sampler->ring, &sample->record);
	return true;
}

static void count_sample(struct sampler *sampler, enum sample_state state)
{
	unsigned int marker;

	count(&sampler->by_state[state]);
	for (marker = 0; marker < MARKER_COUNT; marker++)
		if (sampler->markers_seen & (1u << marker))
			count(&sampler->markers[marker]);
}

static void take_sample(struct sampler *sampler, const ucontext_t *context)
{
	static const struct walk_visitor visitor = {
		.native = show_native,
		.guest = show_guest,
		.marker = show_marker,
	};
	struct frame_list *list = &sampler->list;
	struct walk_facts facts;
	enum sample_state state;
	uint32_t frame_count;

	list->count = 0;
	list->has_guest = false;
	sampler->markers_seen = 0;
	sampler->ring_full = false;
	walk_stack(&sampler->walk, sampler->options.vm, unwind_tables_current(),
	           context, &visitor, sampler, &facts);
	if (sampler->options.backtracer &&
	    sampler->options.mode == LUAM_SYSPROF_CALLGRAPH)
		sampler->options.backtracer(show_backtraced);
	state = state_of(list, &facts);
	frame_count = finish_frames(sampler);
	if (sampler->symbols &&
	    !push_sample(sampler, &facts, state, frame_count)) {
		count(&sampler->lost[LOST_RING_FULL]);
		return;
	}
	count_sample(sampler, state);
	if (sampler->beacon)
		beacon_emit(sampler->beacon, list->addresses, frame_count);
}

static void handle_own(struct sampler *sampler, const ucontext_t *context)
{
	if (sigismember(&context->uc_sigmask, SIGSEGV) == 1) {
		count(&sampler->lost[LOST_FAULTS_BLOCKED]);
		return;
	}
	take_sample(sampler, context);
}

void sampler_handle_signal(int signal, siginfo_t *info, void *context)
{
	struct sampler *sampler = own_sampler;
	int saved_errno = errno;

	(void)signal;
	if (!sampler) {
		atomic_fetch_add_explicit(&foreign_count, 1,
		                          memory_order_relaxed);
		return;
	}
	if (atomic_exchange(&sampler->in_handler, true)) {
		count(&sampler->lost[LOST_NESTED]);
		return;
	}
	/* disabled is read behind the store above: sampler_close() sets it
	 * first and then waits for in_handler. */
	if (!atomic_load(&sampler->disabled) &&
	    sample_clock_sent(sampler->options.clock, info))
		handle_own(sampler, context);
	atomic_store(&sampler->in_handler, false);
	errno = saved_errno;
}
