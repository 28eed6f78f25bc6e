// SPDX-License-Identifier: MIT
/*
 * Sampler: the handler of the clocks' signal, on the thread that is sampled. It writes only
 * to its sampler and leaves errno alone.
 */
#include "sampler_state.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "labels_sig.h"
#include "load_sig.h"

/* Ranges of the arena for library functions and markers: one each. */
#define ARENA_SMALL_RANGE_BYTES 16

/* Samples before the handler's time is averaged, and the most that the first one
 * counts then: it may have been interrupted. */
#define WARM_UP_SAMPLES      64
#define FIRST_HANDLER_NS_MAX 20000

/* Samples that one signal can be: so many overflows of the clock in one stay in the
 * kernel. The rest of a longer stay is counted as lost. */
#define SAMPLES_PER_SIGNAL_MAX 64

/* How old the news may be that our fault handler is still in place. */
#define FAULTS_LOOK_NS UINT64_C(50000000)

/* The documented contract of custom backtracers: frames up to this number are
 * taken for the profiler's own. */
#define BACKTRACER_SKIPPED_FRAMES 6

/*
 * Initial-exec, so that reading them calls nothing; only these, since the loader
 * has little room of this kind for libraries loaded late.
 */
static __thread uint32_t own_thread_id
	__attribute__((tls_model("initial-exec")));
/* For a custom backtracer, which passes no context on. */
static __thread struct sampler *current_sampler
	__attribute__((tls_model("initial-exec")));

struct sampler_slot sampler_slots[SAMPLERS_MAX];
_Atomic int sampler_slot_end;
_Atomic uint64_t sampler_foreign_count;

void sampler_forget_thread(void)
{
	own_thread_id = 0;
}

static void count_some(_Atomic uint64_t *counter, uint64_t number)
{
	atomic_store_explicit(
		counter,
		atomic_load_explicit(counter, memory_order_relaxed) + number,
		memory_order_relaxed);
}

static void count(_Atomic uint64_t *counter)
{
	count_some(counter, 1);
}

/* The frame that is lost may tell of others. */
static void note_gap(struct frame_list *list, const struct frame *frame)
{
	if (frame->kind == FRAME_MARKER && frame->value == MARKER_TRUNCATED)
		list->gap += frame->line;
}

static void append(struct frame_list *list, const struct frame *frame,
                   uint64_t address)
{
	uint32_t place = list->count++;

	if (place < FRAMES_HEAD) {
		list->frames[place] = *frame;
		list->addresses[place] = address;
		return;
	}
	place -= FRAMES_HEAD;
	if (place >= FRAMES_TAIL)
		note_gap(list, &list->tail_frames[place % FRAMES_TAIL]);
	place %= FRAMES_TAIL;
	list->tail_frames[place] = *frame;
	list->tail_addresses[place] = address;
}

static bool wants_native(const struct sampler *sampler)
{
	return sampler->options.mode == LUAM_SYSPROF_CALLGRAPH &&
	       !sampler->options.backtracer;
}

static void show_native(void *context, uint64_t address)
{
	struct sampler *sampler = context;
	struct frame frame = {.kind = FRAME_HOST, .value = address};

	if (wants_native(sampler))
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

	/* Native frames alone are left out so far. */
	if (marker == MARKER_TRUNCATED && frame_count && !wants_native(sampler))
		return;
	sampler->markers_seen |= 1u << marker;
	append(&sampler->list, &frame, marker_address(sampler, marker));
}

static void show_lua(struct sampler *sampler, const struct guest_frame *guest)
{
	struct frame frame = {.kind = FRAME_LUA, .line = guest->line};
	const struct known_prototype *known;

	if (!sampler->symbols)
		return;
	switch (lua_symbols_find(sampler->symbols, guest->vm, guest->prototype,
	                         guest, &known)) {
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

/* The function handed to a custom backtracer. */
static void *show_backtraced(int frame_number, void *address)
{
	struct frame frame = {.kind = FRAME_HOST, .value = (uint64_t)address};
	struct sampler *sampler = current_sampler;

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
		                                     .line = lost + list->gap};
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

/* The label that a coroutine was given, and not another one that had its address
 * before: see label_module.c. */
static uint32_t find_own_label(const struct vm_frame *vm_frame)
{
	uint64_t witness;
	uint32_t label = labels_find(vm_frame->thread, &witness);

	if (label && !table_holds_thread(vm_frame->vm->layout, witness,
	                                 vm_frame->thread))
		return 0;
	return label;
}

/* A request's coroutine may have resumed others to do a part of its work. */
static uint32_t find_label(const struct walk *walk)
{
	uint64_t previous = 0;
	uint32_t label = 0;

	for (size_t i = 0; !label && i < walk->vm_frame_count; i++) {
		if (walk->vm_frames[i].thread != previous)
			label = find_own_label(&walk->vm_frames[i]);
		previous = walk->vm_frames[i].thread;
	}
	return label;
}

/* Of the bytecode behind which pc is; VM_PART_NONE if it cannot be read. */
static enum vm_part part_of_bytecode(const struct vm *vm, uint64_t pc)
{
	uint8_t header =
		(uint8_t)(vm->layout->bytecode_count - VM_HEADER_COUNT);
	uint8_t bytecode;

	if (!pc || !load_u8(pc - BYTECODE_BYTES, &bytecode) ||
	    bytecode >= vm->layout->bytecode_count)
		return VM_PART_NONE;
	if (bytecode >= header)
		return VM_PART_HEADER + (bytecode - header);
	return VM_PART_BYTECODE + bytecode;
}

/* What the VM does for the innermost Lua function. */
static enum vm_part find_vm_part(const struct sampler *sampler,
                                 const struct walk_facts *facts)
{
	const struct guest_frame *top = &sampler->list.top;
	const struct vm_frame *vm_frame = &sampler->walk.vm_frames[0];

	if (!sampler->list.has_guest || top->kind != GUEST_LUA_FUNCTION)
		return VM_PART_NONE;
	if (facts->vmstate == ~VMSTATE_EXIT)
		return vm_frame->origin == VM_FRAME_EXIT ? VM_PART_EXIT
		                                         : VM_PART_NONE;
	if (vm_frame->origin == VM_FRAME_TRACE)
		return vm_frame->trace_number ? VM_PART_NONE : VM_PART_STUB;
	return top->compiled ? VM_PART_NONE
	                     : part_of_bytecode(top->vm, top->pc);
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
		if (lua_symbols_find_trace(
			    sampler->symbols,
			    facts->vm ? facts->vm : sampler->options.vm,
			    trace_number, &trace_symbol) == SYMBOL_RING_FULL)
			return false;
	}
	sample = ring_reserve(&sampler->ring, sizeof(*sample) + frame_bytes);
	if (!sample)
		return false;
	*sample = (struct sample){
		.record = {(uint32_t)(sizeof(*sample) + frame_bytes),
	                   RING_SAMPLE},
		.time_ns = sampler->sample_ns,
		.coroutine = facts->thread,
		.thread_id = sampler->thread_id,
		.vm_number = facts->vm ? facts->vm->number : 0,
		.trace_number = trace_number,
		.trace_symbol = trace_symbol,
		.frame_count = (uint16_t)frame_count,
		.state = (uint8_t)state,
		.vm_part = (uint8_t)find_vm_part(sampler, facts),
		.label = find_label(&sampler->walk),
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

/* What the kernel was doing for the thread. */
static void show_kernel(struct sampler *sampler)
{
	for (uint32_t i = 0; i < sampler->kernel.count; i++) {
		struct frame frame = {.kind = FRAME_HOST,
		                      .value = sampler->kernel.frames[i]};

		append(&sampler->list, &frame, frame.value);
	}
}

/* The kernel's own part goes to perf by other ways. */
static void emit_beacon(struct sampler *sampler, uint32_t frame_count)
{
	uint32_t kernel_count = sampler->kernel.count;

	if (sampler->beacon)
		beacon_emit(sampler->beacon,
		            sampler->list.addresses + kernel_count,
		            frame_count - kernel_count);
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
	list->gap = 0;
	list->has_guest = false;
	sampler->markers_seen = 0;
	sampler->ring_full = false;
	if (sampler->symbols)
		lua_symbols_begin(sampler->symbols);
	show_kernel(sampler);
	walk_stack(&sampler->walk, sampler->options.vm, context, &visitor,
	           sampler, &facts);
	if (sampler->options.backtracer &&
	    sampler->options.mode == LUAM_SYSPROF_CALLGRAPH) {
		current_sampler = sampler;
		sampler->options.backtracer(show_backtraced);
	}
	state = state_of(list, &facts);
	frame_count = finish_frames(sampler);
	if (sampler->symbols &&
	    !push_sample(sampler, &facts, state, frame_count)) {
		count(&sampler->lost[LOST_RING_FULL]);
		return;
	}
	count_sample(sampler, state);
	emit_beacon(sampler, frame_count);
}

/* Of some 32 samples, by their elapsed time: one that was interrupted counts no
 * more than four times as much as usual. The first ones do not count: they meet
 * cold caches and pages that are not there yet, and a longer interval stays. */
static void average_time(struct sampler *sampler, uint64_t time_ns)
{
	uint64_t average = atomic_load_explicit(&sampler->handler_ns,
	                                        memory_order_relaxed);

	if (sampler->warm_up_count < WARM_UP_SAMPLES) {
		sampler->warm_up_count++;
		return;
	}
	if (average == 0)
		average = time_ns < FIRST_HANDLER_NS_MAX ? time_ns
		                                         : FIRST_HANDLER_NS_MAX;
	if (time_ns > 4 * average)
		time_ns = 4 * average;
	average = (31 * average + time_ns + 31) / 32;
	atomic_store_explicit(&sampler->handler_ns, average,
	                      memory_order_relaxed);
}

/*
 * A signal waits until the thread leaves the kernel, so one may stand for several
 * overflows of the clock: each is a sample, with the same user stack. Those in user
 * code but the last one have waited for another reason, such as a blocked signal;
 * what the stack was then is not known.
 */
static void take_kernel_samples(struct sampler *sampler,
                                const ucontext_t *context)
{
	struct kernel_stack *kernel = &sampler->kernel;
	uint64_t start_ns = sampler->sample_ns;
	uint32_t sample_count = 0;

	while (sample_clock_next_kernel(sampler->options.clock, kernel)) {
		count_some(&sampler->lost[LOST_LATE], kernel->lost);
		if ((kernel->count == 0 && !kernel->is_last) ||
		    sample_count == SAMPLES_PER_SIGNAL_MAX) {
			count(&sampler->lost[LOST_LATE]);
			continue;
		}
		sampler->sample_ns = kernel->time_ns;
		take_sample(sampler, context);
		sample_count++;
	}
	count_some(&sampler->lost[LOST_LATE], kernel->lost);
	if (sample_count > 0)
		average_time(sampler, (now_ns() - start_ns) / sample_count);
}

/*
 * To look costs two system calls, a third of a warm sample, so a good answer holds
 * for FAULTS_LOOK_NS. A host that puts its own handler over ours is noticed that
 * much later: until then a load that faults would reach its handler. Loads hardly
 * ever do: none did in 100,000 samples of tests/programs.
 */
static bool faults_are_caught(struct sampler *sampler)
{
	if (sampler->faults_caught_ns != 0 &&
	    sampler->sample_ns - sampler->faults_caught_ns < FAULTS_LOOK_NS)
		return true;
	sampler->faults_caught_ns =
		load_faults_caught() ? sampler->sample_ns : 0;
	return sampler->faults_caught_ns != 0;
}

/* Of a signal that is no sample: what its overflows tell would pass for a later
 * one's. */
static void lose_signal(struct sampler *sampler, enum lost_reason reason)
{
	count(&sampler->lost[reason]);
	while (sample_clock_next_kernel(sampler->options.clock,
	                                &sampler->kernel))
		;
}

static void handle_own(struct sampler *sampler, const ucontext_t *context)
{
	/* sigismember() is safe, but a call; the mask's first word has it. */
	if (context->uc_sigmask.__val[0] & (1ul << (SIGSEGV - 1))) {
		lose_signal(sampler, LOST_FAULTS_BLOCKED);
		return;
	}
	sampler->sample_ns = now_ns();
	if (!faults_are_caught(sampler)) {
		lose_signal(sampler, LOST_FAULTS_REPLACED);
		return;
	}
	if (sampler->options.clock->kernel_ring) {
		take_kernel_samples(sampler, context);
		return;
	}
	sampler->kernel.count = 0;
	take_sample(sampler, context);
	average_time(sampler, now_ns() - sampler->sample_ns);
}

static void offer_signal(struct sampler *sampler, const siginfo_t *info,
                         const ucontext_t *context)
{
	if (atomic_exchange(&sampler->in_handler, true)) {
		count(&sampler->lost[LOST_NESTED]);
		return;
	}
	if (!atomic_load(&sampler->disabled) &&
	    sample_clock_sent(sampler->options.clock, info))
		handle_own(sampler, context);
	atomic_store(&sampler->in_handler, false);
}

/* Offers the signal to each sampler of the thread; false: it has none. */
static bool offer_to_slots(uint32_t thread_id, const siginfo_t *info,
                           const ucontext_t *context)
{
	int end = atomic_load_explicit(&sampler_slot_end, memory_order_acquire);
	bool found = false;

	for (int i = 0; i < end; i++) {
		struct sampler_slot *slot = &sampler_slots[i];
		struct sampler *sampler;

		if (atomic_load_explicit(&slot->thread_id,
		                         memory_order_relaxed) != thread_id)
			continue;
		/* In this order: sampler_detach() takes the sampler away and
		 * then waits for the users. */
		atomic_fetch_add(&slot->user_count, 1);
		sampler = atomic_load(&slot->sampler);
		if (sampler && sampler->thread_id == thread_id) {
			found = true;
			offer_signal(sampler, info, context);
		}
		atomic_fetch_sub(&slot->user_count, 1);
	}
	return found;
}

void sampler_handle_signal(int signal, siginfo_t *info, void *context)
{
	int saved_errno = errno;

	(void)signal;
	if (!own_thread_id)
		own_thread_id = (uint32_t)gettid();
	if (!offer_to_slots(own_thread_id, info, context))
		atomic_fetch_add_explicit(&sampler_foreign_count, 1,
		                          memory_order_relaxed);
	errno = saved_errno;
}
