// SPDX-License-Identifier: MIT
/*
 * Allocation recorder; see alloc_recorder.h. On the VM's thread, inside its
 * allocator, but for what the header gives to the writer thread.
 *
 * Who asks is found out before the real allocator is called: it may move the
 * Lua stack from which that is read.
 */
#include "alloc_recorder.h"

#include <errno.h>
#include <math.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include "allocation.h"
#include "host/unwind_table.h"
#include "live_blocks.h"
#include "load_sig.h"
#include "lua_symbols_sig.h"
#include "vm/running.h"
#include "walk_sig.h"

/* Half a million events; the writer is woken far earlier. */
#define RING_BYTES         (32u << 20)
#define RING_BYTES_SAMPLED (4u << 20)
#define WAKE_BYTES         (1u << 19)

/* The context is written so often at least, and the clock is read, in events. */
#define CONTEXT_EVENTS 4096
#define CLOCK_EVENTS   64

struct alloc_recorder {
	struct alloc_recorder_options options;
	_Atomic bool disabled;
	_Atomic uint64_t event_count;
	_Atomic uint64_t lost[MEMPROF_LOST_COUNT];
	sem_t wake;

	/* The VM's thread's own. */
	struct ring ring;
	size_t unannounced_bytes; /* put into the ring since the last wake */
	struct lua_symbols *symbols;
	_Atomic uint32_t last_symbol_id;
	struct running_cache *cache;
	struct allocation_context context; /* as last written */
	uint32_t context_events;           /* since then */
	uint32_t clock_events;             /* of Lua and C functions */

	/* Sampling. */
	struct live_blocks live;
	double until_sample_bytes; /* to the next sampled byte */
	uint64_t random;

	/* Stacks; NULL: off. */
	struct walk *walk;
	struct allocation_stack *stack; /* room for ALLOCATION_FRAMES_MAX */
	uint64_t dropped_frames;        /* that did not fit */
	bool ring_full;                 /* for a symbol of this stack */
};

/* One call of the allocator. */
struct allocator_call {
	uint64_t old_address, old_bytes; /* 0: none */
	uint64_t new_address, new_bytes; /* 0: none */
	uint8_t flags;                   /* EVENT_FLAG_* */
};

/* ---- opening and closing ---------------------------------------------------- */

static void *map_memory(size_t bytes, struct error *error)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory != MAP_FAILED)
		return memory;
	error_set(error, PROFILE_ERRMEM, errno,
	          "out of memory for the memory profile: %s", strerror(errno));
	return NULL;
}

static void unmap_memory(void *memory, size_t bytes)
{
	if (memory)
		munmap(memory, bytes);
}

static size_t stack_bytes(size_t frame_count)
{
	return sizeof(struct allocation_stack) +
	       frame_count * sizeof(struct frame);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) +
	       (uint64_t)now.tv_nsec;
}

/* xorshift64*: from 0 (not included) to 1. */
static double random_fraction(struct alloc_recorder *recorder)
{
	uint64_t state = recorder->random;

	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	recorder->random = state;
	state = (state * UINT64_C(0x2545f4914f6cdd1d)) >> 11;
	return ((double)state + 1) / (double)(UINT64_C(1) << 53);
}

/* The sampled bytes are a Poisson process: the distance to the next one does
 * not depend on what was before. */
static void draw_next_sample(struct alloc_recorder *recorder)
{
	recorder->until_sample_bytes = -log(random_fraction(recorder)) *
	                               (double)recorder->options.sample_bytes;
}

static int open_parts(struct alloc_recorder *recorder, struct error *error)
{
	const struct alloc_recorder_options *options = &recorder->options;

	if (ring_open(&recorder->ring,
	              options->sample_bytes ? RING_BYTES_SAMPLED : RING_BYTES,
	              error))
		return -1;
	recorder->symbols = lua_symbols_open(&recorder->ring, NULL,
	                                     &recorder->last_symbol_id, error);
	recorder->cache = map_memory(running_cache_bytes(), error);
	if (!recorder->symbols || !recorder->cache)
		return -1;
	if (!options->stacks)
		return 0;
	recorder->walk = map_memory(sizeof(*recorder->walk), error);
	recorder->stack = map_memory(stack_bytes(ALLOCATION_FRAMES_MAX), error);
	return recorder->walk && recorder->stack ? 0 : -1;
}

struct alloc_recorder *
alloc_recorder_open(const struct alloc_recorder_options *options,
                    struct error *error)
{
	struct alloc_recorder *recorder = map_memory(sizeof(*recorder), error);

	if (!recorder)
		return NULL;
	recorder->options = *options;
	sem_init(&recorder->wake, 0, 0);
	recorder->random = now_ns() | 1;
	recorder->context_events = CONTEXT_EVENTS;
	if (load_faults_catch(error) < 0) {
		munmap(recorder, sizeof(*recorder));
		return NULL;
	}
	if (open_parts(recorder, error) < 0) {
		alloc_recorder_close(recorder);
		return NULL;
	}
	if (options->sample_bytes)
		draw_next_sample(recorder);
	return recorder;
}

void alloc_recorder_close(struct alloc_recorder *recorder)
{
	load_faults_release();
	live_blocks_close(&recorder->live);
	lua_symbols_close(recorder->symbols);
	if (recorder->ring.bytes)
		ring_close(&recorder->ring);
	unmap_memory(recorder->cache, running_cache_bytes());
	unmap_memory(recorder->walk, sizeof(*recorder->walk));
	unmap_memory(recorder->stack, stack_bytes(ALLOCATION_FRAMES_MAX));
	sem_destroy(&recorder->wake);
	munmap(recorder, sizeof(*recorder));
}

/* ---- the writer thread's side ------------------------------------------------ */

struct ring *alloc_recorder_ring(struct alloc_recorder *recorder)
{
	return &recorder->ring;
}

void alloc_recorder_wait(struct alloc_recorder *recorder, uint64_t wait_ns)
{
	uint64_t until_ns = now_ns() + wait_ns;
	struct timespec until = {
		.tv_sec = (time_t)(until_ns / 1000000000u),
		.tv_nsec = (long)(until_ns % 1000000000u),
	};

	sem_clockwait(&recorder->wake, CLOCK_MONOTONIC, &until);
}

void alloc_recorder_wake(struct alloc_recorder *recorder)
{
	sem_post(&recorder->wake);
}

void alloc_recorder_disable(struct alloc_recorder *recorder)
{
	atomic_store(&recorder->disabled, true);
}

void alloc_recorder_read_counters(const struct alloc_recorder *recorder,
                                  struct alloc_counters *counters)
{
	counters->events = atomic_load_explicit(&recorder->event_count,
	                                        memory_order_relaxed);
	for (size_t i = 0; i < MEMPROF_LOST_COUNT; i++)
		counters->lost[i] = atomic_load_explicit(&recorder->lost[i],
		                                         memory_order_relaxed);
}

/* ---- stacks ------------------------------------------------------------------ */

static void append_frame(struct alloc_recorder *recorder,
                         const struct frame *frame)
{
	struct allocation_stack *stack = recorder->stack;

	/* The last place is for the marker of what is missing. */
	if (stack->frame_count < ALLOCATION_FRAMES_MAX - 1)
		stack->frames[stack->frame_count++] = *frame;
	else
		recorder->dropped_frames++;
}

static void show_marker(void *context, enum frame_marker marker,
                        uint32_t frame_count)
{
	struct frame frame = {
		.kind = FRAME_MARKER, .value = marker, .line = frame_count};

	append_frame(context, &frame);
}

/* A memory profile is about who asked the VM; its own C code is no news. */
static void leave_out_native(void *context, uint64_t address)
{
	(void)context;
	(void)address;
}

static void show_lua(struct alloc_recorder *recorder,
                     const struct guest_frame *guest)
{
	struct frame frame = {
		.kind = FRAME_LUA,
		.line = guest->line,
		.flags = guest->compiled ? FRAME_FLAG_COMPILED : 0,
	};
	const struct known_prototype *known;

	switch (lua_symbols_find(recorder->symbols, guest->vm, guest->prototype,
	                         guest, &known)) {
	case SYMBOL_KNOWN:
		frame.value = known->id;
		append_frame(recorder, &frame);
		break;
	case SYMBOL_RING_FULL:
		recorder->ring_full = true;
		break;
	case SYMBOL_TABLE_FULL:
		show_marker(recorder, MARKER_SYMBOLS_FULL, 1);
		break;
	case SYMBOL_UNREADABLE:
		show_marker(recorder, MARKER_GUEST_BAD_FRAME, 1);
		break;
	}
}

static void show_guest(void *context, const struct guest_frame *guest)
{
	struct frame frame = {.kind = FRAME_C, .value = guest->c_function};

	switch (guest->kind) {
	case GUEST_LUA_FUNCTION:
		show_lua(context, guest);
		break;
	case GUEST_C_FUNCTION:
		append_frame(context, &frame);
		break;
	case GUEST_FAST_FUNCTION:
		frame.kind = FRAME_FAST;
		frame.value = guest->fast_number;
		append_frame(context, &frame);
		break;
	case GUEST_UNKNOWN_FUNCTION:
		show_marker(context, MARKER_GUEST_BAD_FRAME, 1);
		break;
	}
}

/* The walk begins in this function. */
static void take_stack(struct alloc_recorder *recorder)
{
	static const struct walk_visitor visitor = {
		.native = leave_out_native,
		.guest = show_guest,
		.marker = show_marker,
	};
	struct walk_facts facts;
	ucontext_t context;

	cpu_context_capture(&context);
	recorder->stack->frame_count = 0;
	recorder->dropped_frames = 0;
	recorder->ring_full = false;
	walk_stack(recorder->walk, recorder->options.vm, &context, &visitor,
	           recorder, &facts);
}

/* In a trace the walk knows the function of the last snapshot; running_find()
 * knows more. The stack shall end in the same line that the event has. */
static void correct_leaf(struct alloc_recorder *recorder,
                         const struct running *running)
{
	struct allocation_stack *stack = recorder->stack;
	struct frame *leaf = stack->frames;
	const struct known_prototype *known;

	if (running->kind != RUNNING_LUA || !running->trace_number ||
	    !stack->frame_count || leaf->kind != FRAME_LUA ||
	    lua_symbols_find(recorder->symbols, recorder->options.vm,
	                     running->value, NULL, &known) != SYMBOL_KNOWN)
		return;
	if (leaf->value != known->id &&
	    stack->frame_count < ALLOCATION_FRAMES_MAX - 1) {
		memmove(leaf + 1, leaf, stack->frame_count * sizeof(*leaf));
		stack->frame_count++;
		leaf->value = known->id;
	}
	if (leaf->value == known->id)
		leaf->line = running->line;
}

/* False if the ring has no room for it, or had none for its symbols. */
static bool push_stack(struct alloc_recorder *recorder)
{
	struct allocation_stack *stack = recorder->stack;
	struct allocation_stack *record;
	size_t bytes;

	if (recorder->ring_full)
		return false;
	if (recorder->dropped_frames)
		stack->frames[stack->frame_count++] = (struct frame){
			.kind = FRAME_MARKER,
			.value = MARKER_TRUNCATED,
			.line = (uint32_t)recorder->dropped_frames,
		};
	bytes = stack_bytes(stack->frame_count);
	record = ring_reserve(&recorder->ring, bytes);
	if (!record)
		return false;
	memcpy(record, stack, bytes);
	record->record = (struct ring_record){
		.bytes = (uint32_t)bytes,
		.kind = RING_ALLOCATION_STACK,
	};
	ring_commit(&recorder->ring, &record->record);
	recorder->unannounced_bytes += bytes;
	return true;
}

/* ---- events ------------------------------------------------------------------ */

static void count(_Atomic uint64_t *counter)
{
	atomic_store_explicit(
		counter,
		atomic_load_explicit(counter, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

/* Describes the function unless the writer knows it. What cannot be described
 * is charged to the VM. False if the ring has no room. */
static bool describe_function(struct alloc_recorder *recorder,
                              struct running *running)
{
	const struct guest_frame frame = {
		.vm = recorder->options.vm,
		.kind = GUEST_LUA_FUNCTION,
		.prototype = running->value,
		.call = running->call,
	};
	const struct known_prototype *known;
	enum symbol_result result;

	if (running->kind != RUNNING_LUA || *running->mark)
		return true;
	result = lua_symbols_find(recorder->symbols, recorder->options.vm,
	                          running->value, &frame, &known);
	if (result == SYMBOL_RING_FULL)
		return false;
	if (result == SYMBOL_KNOWN)
		*running->mark = 1;
	else
		running->kind = RUNNING_INTERNAL;
	return true;
}

/* The same for the trace; one that cannot be described has its number alone. */
static bool describe_trace(struct alloc_recorder *recorder,
                           const struct running *running)
{
	enum symbol_result result;
	uint32_t lua_symbol;

	if (!running->trace_number || *running->trace_mark)
		return true;
	result = lua_symbols_find_trace(recorder->symbols, recorder->options.vm,
	                                running->trace_number, &lua_symbol);
	if (result == SYMBOL_RING_FULL)
		return false;
	*running->trace_mark = 1;
	return true;
}

/* Reading the clock costs as much as an event. */
static void update_time(struct alloc_recorder *recorder)
{
	if (!recorder->options.sample_bytes &&
	    recorder->clock_events++ % CLOCK_EVENTS != 0)
		return;
	recorder->context.time_ns = now_ns();
}

/* Writes the context if it has changed, or if the time is due. */
static bool push_context(struct alloc_recorder *recorder,
                         const struct running *running)
{
	struct allocation_context *last = &recorder->context;
	struct allocation_context *record;

	if (running->kind == RUNNING_INTERNAL)
		return true;
	update_time(recorder);
	if (last->coroutine == running->coroutine &&
	    last->trace_number == running->trace_number &&
	    recorder->context_events++ < CONTEXT_EVENTS)
		return true;
	record = ring_reserve(&recorder->ring, sizeof(*record));
	if (!record)
		return false;
	last->record =
		(struct ring_record){sizeof(*record), RING_ALLOCATION_CONTEXT};
	last->coroutine = running->coroutine;
	last->trace_number = running->trace_number;
	recorder->context_events =
		recorder->options.sample_bytes ? CONTEXT_EVENTS : 0;
	*record = *last;
	ring_commit(&recorder->ring, &record->record);
	recorder->unannounced_bytes += sizeof(*record);
	return true;
}

static const uint8_t source_of_running[] = {
	[RUNNING_INTERNAL] = MEMPROF_INTERNAL,
	[RUNNING_LUA] = MEMPROF_LUA,
	[RUNNING_C] = MEMPROF_C,
	[RUNNING_TRACE] = MEMPROF_TRACE,
};

static bool push_event(struct alloc_recorder *recorder,
                       const struct running *running,
                       const struct allocator_call *call)
{
	uint8_t event = !call->new_bytes     ? MEMPROF_FREE
	                : !call->old_address ? MEMPROF_ALLOC
	                                     : MEMPROF_REALLOC;
	size_t block_count = event == MEMPROF_REALLOC ? 4 : 2;
	size_t bytes =
		sizeof(struct allocation) + block_count * sizeof(uint64_t);
	struct allocation *record = ring_reserve(&recorder->ring, bytes);
	uint64_t *block;

	if (!record)
		return false;
	*record = (struct allocation){
		.record = {(uint32_t)bytes, RING_ALLOCATION},
		.source = running->value,
		.line = running->line,
		.event = event,
		.kind = source_of_running[running->kind],
		.flags = call->flags,
	};
	block = record->blocks;
	if (event != MEMPROF_ALLOC) {
		*block++ = call->old_address;
		*block++ = call->old_bytes;
	}
	if (event != MEMPROF_FREE) {
		*block++ = call->new_address;
		*block++ = call->new_bytes;
	}
	ring_commit(&recorder->ring, &record->record);
	recorder->unannounced_bytes += bytes;
	return true;
}

static void record_event(struct alloc_recorder *recorder,
                         struct running *running,
                         const struct allocator_call *call)
{
	if (describe_function(recorder, running) &&
	    describe_trace(recorder, running) &&
	    push_context(recorder, running) &&
	    (!recorder->walk || push_stack(recorder)) &&
	    push_event(recorder, running, call))
		count(&recorder->event_count);
	else
		count(&recorder->lost[MEMPROF_LOST_RING_FULL]);
	if (recorder->unannounced_bytes < WAKE_BYTES)
		return;
	recorder->unannounced_bytes = 0;
	sem_post(&recorder->wake);
}

/* ---- sampling ---------------------------------------------------------------- */

/* Is a block of this size sampled? Its chance is 1 - exp(-bytes / distance). */
static bool is_sampled(struct alloc_recorder *recorder, size_t bytes)
{
	recorder->until_sample_bytes -= (double)bytes;
	if (recorder->until_sample_bytes >= 0)
		return false;
	draw_next_sample(recorder);
	return true;
}

/* Leaves of the call what is sampled: the old block, the new one, or both. */
static bool keep_sampled(struct alloc_recorder *recorder,
                         struct allocator_call *call)
{
	bool resizes = call->old_address && call->new_address;
	bool old_sampled =
		call->old_address &&
		live_blocks_remove(&recorder->live, call->old_address);
	bool new_sampled =
		call->new_address && is_sampled(recorder, call->new_bytes);

	if (new_sampled &&
	    !live_blocks_add(&recorder->live, call->new_address)) {
		count(&recorder->lost[MEMPROF_LOST_LIVE_FULL]);
		new_sampled = false;
	}
	if (resizes && old_sampled != new_sampled)
		call->flags = EVENT_FLAG_RESIZE;
	if (!old_sampled)
		call->old_address = call->old_bytes = 0;
	if (!new_sampled)
		call->new_address = call->new_bytes = 0;
	return old_sampled || new_sampled;
}

/* ---- the allocator ----------------------------------------------------------- */

static void fill_call(struct allocator_call *call, const void *old_block,
                      size_t old_bytes, const void *new_block, size_t new_bytes)
{
	*call = (struct allocator_call){
		.old_address = (uint64_t)old_block,
		.old_bytes = old_block ? old_bytes : 0,
		.new_address = new_bytes ? (uint64_t)new_block : 0,
		.new_bytes = new_bytes,
	};
}

/* Known before the call: neither side of any other call is sampled. */
static bool may_be_sampled(const struct alloc_recorder *recorder,
                           const void *old_block, size_t new_bytes)
{
	return recorder->until_sample_bytes < (double)new_bytes ||
	       (old_block &&
	        live_blocks_hold(&recorder->live, (uint64_t)old_block));
}

static void *pass_on(struct alloc_hook *hook, void *old_block, size_t old_bytes,
                     size_t new_bytes)
{
	struct alloc_recorder *recorder = hook->recorder;
	void *block =
		hook->inner(hook->inner_data, old_block, old_bytes, new_bytes);

	if (new_bytes && !block)
		return NULL;
	recorder->until_sample_bytes -= (double)new_bytes;
	if (old_block && block != old_block)
		running_forget(recorder->cache, (uint64_t)old_block);
	return block;
}

static void *record_call(struct alloc_hook *hook, void *old_block,
                         size_t old_bytes, size_t new_bytes)
{
	struct alloc_recorder *recorder = hook->recorder;
	struct allocator_call call;
	struct running running;
	void *block;

	lua_symbols_begin(recorder->symbols);
	running_find(recorder->cache, recorder->options.vm, &running);
	if (recorder->walk) {
		take_stack(recorder);
		correct_leaf(recorder, &running);
	}
	block = hook->inner(hook->inner_data, old_block, old_bytes, new_bytes);
	if ((new_bytes && !block) || (!new_bytes && !old_block))
		return block;
	fill_call(&call, old_block, old_bytes, block, new_bytes);
	if (!recorder->options.sample_bytes || keep_sampled(recorder, &call))
		record_event(recorder, &running, &call);
	if (old_block && block != old_block)
		running_forget(recorder->cache, (uint64_t)old_block);
	return block;
}

void *alloc_hook_call(void *data, void *block, size_t old_bytes,
                      size_t new_bytes)
{
	struct alloc_hook *hook = data;
	struct alloc_recorder *recorder = hook->recorder;

	if (!recorder ||
	    atomic_load_explicit(&recorder->disabled, memory_order_relaxed))
		return hook->inner(hook->inner_data, block, old_bytes,
		                   new_bytes);
	if (recorder->options.sample_bytes &&
	    !may_be_sampled(recorder, block, new_bytes))
		return pass_on(hook, block, old_bytes, new_bytes);
	return record_call(hook, block, old_bytes, new_bytes);
}
