// SPDX-License-Identifier: MIT
/*
 * The self-check of a layout. Everything is read through loads that cannot
 * fault, since most layouts are wrong for the VM at hand.
 *
 * The checks go from cheap to dear, so that a wrong layout is out early.
 */
#include "check.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <lauxlib.h>
#include <lualib.h>

#include "object_sig.h"
#include "trace_sig.h"
#include "vm_frame_sig.h"

/* Values that nobody uses for the collector's settings. */
#define ODD_PAUSE           277
#define ODD_STEP_MULTIPLIER 311

/* The running C function lies this close below its VM frame. */
#define STACK_DISTANCE_MAX 65536
/* lua_State.stack_limit leaves a few slots unused. */
#define STACK_EXTRA_SLOTS_MAX 16

#define CHUNK_NAME "=luajit-sysprof self-check"

/* Loop counts that make the JIT compile the loop: by its default settings, and
 * by rather unwilling ones. */
#define HOT_LOOP_COUNT       300
#define UNWILLING_LOOP_COUNT 20000
/* Traces compared with jit.util at most: a layout is right or wrong. */
#define TRACES_COMPARED_MAX 64

/* Lines of the instructions differ from each other, and one is empty. */
static const char chunk_text[] = "local count = ...\n"
				 "local function add(a)\n"
				 "  local b = a + 1\n"
				 "\n"
				 "  return b\n"
				 "end\n"
				 "local sum = 0\n"
				 "for i = 1, count do\n"
				 "  sum = sum + add(i)\n"
				 "end\n"
				 "return sum\n";

/* That the checks need. */
#define INNER_STACK_SLOTS 40

struct check {
	lua_State *L;
	const struct vm_layout *layout;
	const struct vm_code *code;
	lua_CFunction self;
	struct vm vm;       /* as far as the trace reader needs it */
	uint64_t thread;    /* address of L */
	uint64_t chunk;     /* prototype of the loaded chunk */
	int chunk_index;    /* of its function on the Lua stack */
	int jit_util_index; /* of the table jit.util on the Lua stack */
	bool is_inner;      /* L is a VM of our own */
	bool traces_compared;
	struct check_failure *failure;
};

static bool fail(struct check *check, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static bool fail(struct check *check, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(check->failure->text, sizeof(check->failure->text), format,
	          args);
	va_end(args);
	return false;
}

/* Address of a field of global_State. */
static uint64_t global_field(const struct check *check, uint16_t offset)
{
	return check->vm.global_state + offset;
}

static uint64_t thread_field(const struct check *check, uint16_t offset)
{
	return check->thread + offset;
}

static bool reference_is(const struct check *check, uint64_t address,
                         uint64_t expected)
{
	uint64_t found;

	return load_reference(check->layout, address, &found) &&
	       found == expected;
}

static bool word_is(uint64_t address, uint64_t expected)
{
	uint64_t found;

	return load_u64(address, &found) && found == expected;
}

static bool half_is(uint64_t address, uint32_t expected)
{
	uint32_t found;

	return load_u32(address, &found) && found == expected;
}

/* The object that a stack slot or another tagged value refers to. */
static bool slot_is(const struct check *check, uint64_t address,
                    const void *expected)
{
	uint64_t slot;

	if (!load_u64(address, &slot))
		return false;
	slot = check->layout->gc64 ? slot & SLOT_POINTER_MASK : (uint32_t)slot;
	return slot == (uint64_t)expected;
}

static bool check_global(struct check *check)
{
	const struct object_layout *object = &check->layout->object;
	lua_State *other = lua_newthread(check->L);
	uint64_t global;

	if (!load_reference(check->layout,
	                    thread_field(check, object->thread.global),
	                    &global) ||
	    !global ||
	    !reference_is(check, (uint64_t)other + object->thread.global,
	                  global))
		return fail(check, "two coroutines disagree about the global "
		                   "state");
	check->vm.global_state = global;
	if (!is_object(check->layout, check->thread, TYPE_THREAD) ||
	    !is_object(check->layout, (uint64_t)other, TYPE_THREAD))
		return fail(check, "type of a coroutine");
	return true;
}

static bool check_allocator(struct check *check)
{
	const struct global_layout *global = &check->layout->global;
	void *data;
	lua_Alloc allocate = lua_getallocf(check->L, &data);

	if (!word_is(global_field(check, global->alloc_function),
	             (uint64_t)allocate) ||
	    !word_is(global_field(check, global->alloc_data), (uint64_t)data))
		return fail(check, "allocator");
	return true;
}

static bool check_state(struct check *check)
{
	const struct global_layout *global = &check->layout->global;
	uint64_t main_thread;

	if (!slot_is(check, global_field(check, global->registry),
	             lua_topointer(check->L, LUA_REGISTRYINDEX)))
		return fail(check, "registry");
	if (!load_reference(check->layout,
	                    global_field(check, global->main_thread),
	                    &main_thread) ||
	    !is_object(check->layout, main_thread, TYPE_THREAD) ||
	    !reference_is(check,
	                  main_thread + check->layout->object.thread.global,
	                  check->vm.global_state))
		return fail(check, "main coroutine");
	if (!reference_is(check, global_field(check, global->current_thread),
	                  check->thread))
		return fail(check, "running coroutine");
	if (vm_read_state(&check->vm) != ~VMSTATE_C)
		return fail(check, "VM state");
	if (!reference_is(check, global_field(check, global->jit_base), 0))
		return fail(check, "base of the running trace");
	return true;
}

static bool check_collector(struct check *check)
{
	const struct global_layout *global = &check->layout->global;
	lua_State *L = check->L;
	bool pause_agrees, multiplier_agrees;
	uint64_t total;
	int previous;

	total = (uint64_t)lua_gc(L, LUA_GCCOUNT, 0) * 1024 +
	        (uint64_t)lua_gc(L, LUA_GCCOUNTB, 0);
	if (!reference_is(check, global_field(check, global->gc_total), total))
		return fail(check, "memory in use");
	previous = lua_gc(L, LUA_GCSETPAUSE, ODD_PAUSE);
	pause_agrees =
		half_is(global_field(check, global->gc_pause), ODD_PAUSE);
	lua_gc(L, LUA_GCSETPAUSE, previous);
	previous = lua_gc(L, LUA_GCSETSTEPMUL, ODD_STEP_MULTIPLIER);
	multiplier_agrees =
		half_is(global_field(check, global->gc_step_multiplier),
	                ODD_STEP_MULTIPLIER);
	lua_gc(L, LUA_GCSETSTEPMUL, previous);
	if (!pause_agrees || !multiplier_agrees)
		return fail(check, "settings of the collector");
	return true;
}

static int odd_panic(lua_State *L)
{
	(void)L;
	return 0;
}

static bool check_hooks(struct check *check)
{
	const struct global_layout *global = &check->layout->global;
	lua_CFunction previous = lua_atpanic(check->L, odd_panic);
	bool panic_agrees = word_is(global_field(check, global->panic_function),
	                            (uint64_t)odd_panic);
	uint8_t mask;

	lua_atpanic(check->L, previous);
	if (!panic_agrees)
		return fail(check, "panic function");
	if (!word_is(global_field(check, global->hook_function),
	             (uint64_t)lua_gethook(check->L)))
		return fail(check, "hook function");
	/* The upper bits say what the VM is doing, not what it hooks. */
	if (!load_u8(global_field(check, global->hook_mask), &mask) ||
	    (mask & 0x0f) != lua_gethookmask(check->L))
		return fail(check, "hook mask");
	return true;
}

static bool check_stack(struct check *check)
{
	const struct object_layout *object = &check->layout->object;
	struct lua_stack stack;
	uint64_t base, top, limit;

	lua_newtable(check->L);
	if (!lua_stack_read(check->layout, check->thread, &stack) ||
	    !load_u64(thread_field(check, object->thread.base), &base) ||
	    !load_u64(thread_field(check, object->thread.top), &top) ||
	    !load_reference(check->layout,
	                    thread_field(check, object->thread.stack_limit),
	                    &limit))
		return fail(check, "fields of the Lua stack");
	if ((top - base) / 8 != (uint64_t)lua_gettop(check->L) ||
	    !slot_is(check, top - 8, lua_topointer(check->L, -1)))
		return fail(check, "top of the Lua stack");
	if (base <= stack.start || limit < top || limit >= stack.end ||
	    limit < stack.end - UINT64_C(8) * STACK_EXTRA_SLOTS_MAX ||
	    !slot_is(check, stack.start, (const void *)check->thread))
		return fail(check, "bounds of the Lua stack");
	return true;
}

static bool check_running_function(struct check *check)
{
	const struct object_layout *object = &check->layout->object;
	struct lua_function function;
	struct lua_frame frame;
	uint64_t base, bytecode;
	lua_Debug activation;
	uint8_t opcode;

	if (!lua_getstack(check->L, 0, &activation) ||
	    !lua_getinfo(check->L, "f", &activation) ||
	    !load_u64(thread_field(check, object->thread.base), &base) ||
	    !lua_frame_read(check->layout, base - 8, &frame) ||
	    frame.function != (uint64_t)lua_topointer(check->L, -1))
		return fail(check, "function of the running frame");
	if (!lua_function_read(check->layout, frame.function, &function) ||
	    function.id != FUNCTION_C ||
	    function.c_function != (uint64_t)check->self)
		return fail(check, "C function");
	if (!load_reference(check->layout,
	                    frame.function + object->function.bytecode,
	                    &bytecode) ||
	    !load_u8(bytecode, &opcode) ||
	    opcode != bytecode_funcc(check->layout))
		return fail(check, "bytecode of a C function");
	return true;
}

/* The VM's frame on the C stack, which our own frame lies below. */
static bool check_cframe(struct check *check)
{
	const struct cframe_layout *layout = &check->layout->cframe;
	uint64_t here = (uint64_t)__builtin_frame_address(0);
	uint64_t cframe, return_address;

	if (layout->bytes != check->code->cframe_bytes)
		return fail(check, "size of the C frame, which is %d",
		            check->code->cframe_bytes);
	if (!load_u64(thread_field(check, check->layout->object.thread.cframe),
	              &cframe))
		return fail(check, "C frame");
	cframe &= ~UINT64_C(3);
	if (cframe <= here || cframe - here > STACK_DISTANCE_MAX ||
	    !reference_is(check, cframe + layout->thread, check->thread))
		return fail(check, "C frame of the running coroutine");
	if (!load_u64(cframe - 8, &return_address) ||
	    return_address <= check->code->start ||
	    return_address >= check->code->end)
		return fail(check, "return address into the VM");
	return true;
}

static bool check_dispatch(struct check *check)
{
	uint64_t table = check->vm.global_state - check->layout->gg_global +
	                 check->layout->gg_dispatch;
	uint64_t entry;
	int i;

	/* The word before the table is something else. */
	for (i = -1; i < check->layout->bytecode_count; i++) {
		bool inside =
			load_u64(table + (uint64_t)(i * INT64_C(8)), &entry) &&
			entry >= check->code->start && entry < check->code->end;

		if (inside != (i >= 0))
			return fail(check, "dispatch table, entry %d", i);
	}
	return true;
}

/* Leaves jit.util on the Lua stack without the help of global variables. */
static bool push_jit_util(struct check *check)
{
	lua_State *L = check->L;

	lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
	lua_getfield(L, -1, "jit.util");
	if (lua_isnil(L, -1)) {
		lua_getfield(L, LUA_REGISTRYINDEX, "_PRELOAD");
		if (lua_istable(L, -1)) {
			lua_getfield(L, -1, "jit.util");
			lua_pushliteral(L, "jit.util");
			if (lua_isnil(L, -2) || lua_pcall(L, 1, 1, 0))
				lua_pushnil(L);
		}
	}
	check->jit_util_index = lua_gettop(L);
	return lua_istable(L, -1) ||
	       fail(check, "the library jit.util cannot be reached");
}

static bool load_chunk(struct check *check)
{
	struct lua_function function;

	if (luaL_loadbuffer(check->L, chunk_text, sizeof(chunk_text) - 1,
	                    CHUNK_NAME))
		return fail(check, "cannot load a chunk: %.60s",
		            lua_tostring(check->L, -1));
	check->chunk_index = lua_gettop(check->L);
	if (!lua_function_read(check->layout,
	                       (uint64_t)lua_topointer(check->L, -1),
	                       &function) ||
	    function.id != FUNCTION_LUA)
		return fail(check, "Lua function");
	check->chunk = function.prototype;
	return true;
}

static bool check_chunk_name(struct check *check)
{
	const struct vm_layout *layout = check->layout;
	char name[sizeof(CHUNK_NAME)] = "";
	uint64_t string;

	if (!load_reference(layout,
	                    check->chunk + layout->object.prototype.chunk_name,
	                    &string) ||
	    !half_is(string + layout->string.length, sizeof(name) - 1) ||
	    !load_bytes(name, string + layout->string.bytes,
	                sizeof(name) - 1) ||
	    strcmp(name, CHUNK_NAME))
		return fail(check, "chunk name");
	return true;
}

/* Calls jit.util[function](argument at index, number); leaves what it returns,
 * result_count values. */
static void call_jit_util(const struct check *check, const char *function,
                          int index, int number, int result_count)
{
	lua_getfield(check->L, check->jit_util_index, function);
	if (index)
		lua_pushvalue(check->L, index);
	lua_pushinteger(check->L, number);
	lua_call(check->L, index ? 2 : 1, result_count);
}

/* An integer field of the table on top of the Lua stack. */
static lua_Integer field_of_top(const struct check *check, const char *name)
{
	lua_Integer value;

	lua_getfield(check->L, -1, name);
	value = lua_tointeger(check->L, -1);
	lua_pop(check->L, 1);
	return value;
}

static bool check_prototype(struct check *check)
{
	const struct vm_layout *layout = check->layout;
	uint32_t bytecode_count, line_count, position;

	if (!half_is(check->chunk + layout->object.prototype.first_line, 0) ||
	    !load_u32(check->chunk + layout->object.prototype.line_count,
	              &line_count) ||
	    !load_u32(check->chunk + layout->object.prototype.bytecode_count,
	              &bytecode_count))
		return fail(check, "prototype");
	call_jit_util(check, "funcinfo", check->chunk_index, 0, 1);
	if (field_of_top(check, "bytecodes") != bytecode_count ||
	    field_of_top(check, "lastlinedefined") != line_count)
		return fail(check, "size of a prototype");
	lua_pop(check->L, 1);
	for (position = 1; position < bytecode_count; position++) {
		call_jit_util(check, "funcinfo", check->chunk_index,
		              (int)position, 1);
		if (field_of_top(check, "currentline") !=
		    prototype_line(layout, check->chunk, position))
			return fail(check, "line of instruction %u", position);
		lua_pop(check->L, 1);
	}
	return true;
}

static bool jit_is_on(const struct check *check)
{
	lua_State *L = check->L;
	bool on = false;

	lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
	lua_getfield(L, -1, "jit");
	if (lua_istable(L, -1)) {
		lua_getfield(L, -1, "status");
		if (lua_isfunction(L, -1) && !lua_pcall(L, 0, 1, 0))
			on = lua_toboolean(L, -1);
	}
	return on;
}

static bool run_chunk(struct check *check, int count)
{
	lua_pushvalue(check->L, check->chunk_index);
	lua_pushinteger(check->L, count);
	if (lua_pcall(check->L, 1, 0, 0))
		return fail(check, "the chunk fails: %.60s",
		            lua_tostring(check->L, -1));
	return true;
}

/* Bytes that the assembler may take off the end of a trace that needs no stack
 * adjustment, after it has placed the snapshots. */
#define TRACE_TAIL_BYTES 7

/* An element of the array on top of the Lua stack. */
static lua_Integer element_of_top(const struct check *check, int index)
{
	lua_Integer value;

	lua_rawgeti(check->L, -1, index);
	value = lua_tointeger(check->L, -1);
	lua_pop(check->L, 1);
	return value;
}

/* Of jit.util.tracesnap: number of slots, then the entries of the map, and one
 * that says that they end. */
#define SNAPSHOT_SLOTS   1
#define SNAPSHOT_ENTRIES 2
#define SNAPSHOT_END     INT32_C(-0x1000000)

/* Compares snapshot i of a trace with jit.util. */
static bool check_snapshot(struct check *check, uint32_t number, uint32_t i,
                           const struct trace_snapshot *snapshot)
{
	uint32_t entry = 0;
	bool agrees;

	if (!load_u32(snapshot->entries, &entry))
		return fail(check, "map of trace %u", number);
	lua_getfield(check->L, check->jit_util_index, "tracesnap");
	lua_pushinteger(check->L, (lua_Integer)number);
	lua_pushinteger(check->L, (lua_Integer)i);
	lua_call(check->L, 2, 1);
	agrees =
		lua_istable(check->L, -1) &&
		element_of_top(check, SNAPSHOT_SLOTS) == snapshot->slot_count &&
		(!snapshot->entry_count ||
	         element_of_top(check, SNAPSHOT_ENTRIES) == (int32_t)entry) &&
		element_of_top(check,
	                       SNAPSHOT_ENTRIES + snapshot->entry_count) ==
			SNAPSHOT_END;
	lua_pop(check->L, 1);
	return agrees || fail(check, "map of snapshot %u", i);
}

/* Machine code offsets ascend and stay within the code. The maps are compared for
 * our own trace only: others may have many. */
static bool check_snapshots(struct check *check, uint64_t trace,
                            uint32_t number, uint32_t code_bytes, bool ours)
{
	uint32_t count = trace_snapshot_count(&check->vm, trace), i;
	struct trace_snapshot snapshot;
	uint16_t previous = 0;

	for (i = 0; i < count; i++) {
		if (!trace_read_snapshot(&check->vm, trace, i, &snapshot))
			return fail(check, "snapshot %u of trace %u", i,
			            number);
		if (ours && !check_snapshot(check, number, i, &snapshot))
			return false;
		if (snapshot.code_offset < previous ||
		    snapshot.code_offset > code_bytes + TRACE_TAIL_BYTES)
			return fail(check, "code offset of snapshot %u", i);
		previous = snapshot.code_offset;
	}
	return true;
}

/* Compares a trace with jit.util. *ours: it starts in our chunk. */
static bool check_trace(struct check *check, uint32_t number, bool *ours)
{
	const struct trace_layout *layout = &check->layout->trace;
	uint64_t trace;
	struct trace_start start;
	uint16_t exits, link, own_number;
	uint32_t code_bytes;
	size_t code_length = 0;
	uint64_t code;

	*ours = false;
	call_jit_util(check, "traceinfo", 0, (int)number, 1);
	trace = trace_object(&check->vm, number);
	if (lua_isnil(check->L, -1)) {
		lua_pop(check->L, 1);
		return !trace || fail(check, "trace %u is not there", number);
	}
	/* The collector may take a trace at any call: without a layout that
	 * fits none would be left to compare, which is noticed. */
	if (!trace) {
		lua_pop(check->L, 1);
		return true;
	}
	if (!load_u16(trace + layout->number, &own_number) ||
	    own_number != number)
		return fail(check, "number of trace %u", number);
	if (!load_u16(trace + layout->snapshot_count, &exits) ||
	    field_of_top(check, "nexit") != exits)
		return fail(check, "exits of trace %u", number);
	if (!load_u16(trace + layout->link, &link) ||
	    field_of_top(check, "link") != link)
		return fail(check, "link of trace %u", number);
	lua_pop(check->L, 1);
	call_jit_util(check, "tracemc", 0, (int)number, 2);
	if (lua_isnil(check->L, -2)) {
		lua_pop(check->L, 2);
		return true;
	}
	lua_tolstring(check->L, -2, &code_length);
	/* The address that jit.util gives is exact in its low 32 bits. */
	if (!load_u32(trace + layout->code_bytes, &code_bytes) ||
	    code_bytes != code_length ||
	    !load_u64(trace + layout->code, &code) ||
	    (uint32_t)(int64_t)lua_tonumber(check->L, -1) != (uint32_t)code)
		return fail(check, "machine code of trace %u", number);
	lua_pop(check->L, 2);
	if (!trace_read_start(&check->vm, trace, &start))
		return fail(check, "start of trace %u", number);
	if (!trace_code_holds(&check->vm, code))
		return fail(check, "machine code areas");
	*ours = start.prototype == check->chunk;
	return check_snapshots(check, trace, number, code_bytes, *ours);
}

static bool check_traces(struct check *check, bool *seen)
{
	uint32_t number, compared = 0, count = 0;
	uint64_t jit = check->vm.global_state - check->layout->gg_global +
	               check->layout->gg_jit;
	bool ours;

	*seen = false;
	if (!load_u32(jit + check->layout->jit.trace_count, &count) ||
	    count > 65536)
		return fail(check, "number of traces");
	/* Newest last; ours is the newest, unless it filled a gap. */
	for (number = count; number-- > 1 && compared < TRACES_COMPARED_MAX;) {
		if (!check_trace(check, number, &ours))
			return false;
		if (trace_object(&check->vm, number))
			compared++;
		*seen = *seen || ours;
	}
	return true;
}

/* Does the trace, or the root that it hangs on, start in our chunk? */
static bool is_of_chunk(const struct check *check, uint64_t trace)
{
	struct trace_start start;
	uint16_t root;

	if (!load_u16(trace + check->layout->trace.root, &root))
		return false;
	if (root)
		trace = trace_object(&check->vm, root);
	return trace && trace_read_start(&check->vm, trace, &start) &&
	       start.prototype == check->chunk;
}

/* Our loop has a trace, which is left at its end. */
static bool check_exit(struct check *check)
{
	const struct jit_layout *layout = &check->layout->jit;
	uint64_t jit = check->vm.global_state - check->layout->gg_global +
	               check->layout->gg_jit;
	uint32_t parent, exit;
	uint64_t trace;

	if (!run_chunk(check, HOT_LOOP_COUNT))
		return false;
	if (!load_u32(jit + layout->exit_parent, &parent) ||
	    !load_u32(jit + layout->exit_number, &exit))
		return fail(check, "last exit of a trace");
	trace = trace_object(&check->vm, parent);
	if (!trace || !is_of_chunk(check, trace) ||
	    exit >= trace_snapshot_count(&check->vm, trace))
		return fail(check, "last exit of a trace, %u of %u", exit,
		            parent);
	return true;
}

/* Compiles a loop and compares what comes of it. */
static bool check_compiled(struct check *check)
{
	bool seen = false;

	if (!run_chunk(check, HOT_LOOP_COUNT) || !check_traces(check, &seen))
		return false;
	/* A host may have set a high threshold. Where even that many turns do
	 * not compile, no trace can be compared. */
	if (!seen && (!run_chunk(check, UNWILLING_LOOP_COUNT) ||
	              !check_traces(check, &seen)))
		return false;
	check->traces_compared = seen;
	return !seen || check_exit(check);
}

/* ---- the same in a VM of our own --------------------------------------------- */

/* Our loop would leave traces in the host's VM, and events to those who watch it. */
struct inner_check {
	struct check check;
	bool agrees;
};

static lua_State *_Atomic inner_vm;

bool layout_check_has_made(const lua_State *L)
{
	return L == atomic_load(&inner_vm);
}

static bool check_all(struct check *check);

/* The preload's luaopen_jit() comes before the VM's. */
static int check_inside(lua_State *L)
{
	struct inner_check *inner = lua_touserdata(L, 1);
	lua_CFunction open_jit;

	luaL_checkstack(L, INNER_STACK_SLOTS, "layout check");
	*(void **)&open_jit = dlsym(RTLD_DEFAULT, "luaopen_jit");
	if (!open_jit)
		return luaL_error(L, "no luaopen_jit()");
	lua_pushcfunction(L, open_jit);
	lua_pushliteral(L, LUA_JITLIBNAME);
	lua_call(L, 1, 0);
	inner->agrees = check_all(&inner->check);
	return 0;
}

/* False: there is no such VM, and nothing was compared. */
static bool check_inner(const struct check *check, struct inner_check *inner)
{
	struct check_failure *failure = check->failure;
	size_t passed_count = failure->passed_count;
	lua_State *L = luaL_newstate();
	bool ran;

	if (!L)
		return false;
	inner->agrees = false;
	inner->check = (struct check){
		.L = L,
		.layout = check->layout,
		.code = check->code,
		.self = check_inside,
		.thread = (uint64_t)L,
		.is_inner = true,
		.failure = failure,
	};
	atomic_store(&inner_vm, L);
	ran = lua_cpcall(L, check_inside, inner) == 0;
	lua_close(L);
	atomic_store(&inner_vm, NULL);
	failure->passed_count = passed_count;
	return ran;
}

/* The traces that the host's VM has are compared, too. */
static bool check_jit(struct check *check)
{
	struct inner_check inner;
	bool seen = false;

	if (!jit_is_on(check))
		return true;
	if (check->is_inner || !check_inner(check, &inner))
		return check_compiled(check);
	check->traces_compared = inner.check.traces_compared;
	return inner.agrees && check_traces(check, &seen);
}

static bool check_all(struct check *check)
{
	static bool (*const checks[])(struct check *) = {
		check_global,    check_allocator,
		check_state,     check_collector,
		check_hooks,     check_stack,
		check_dispatch,  check_running_function,
		check_cframe,    push_jit_util,
		load_chunk,      check_chunk_name,
		check_prototype, check_jit,
	};
	size_t *passed_count = &check->failure->passed_count;

	check->vm.layout = check->layout;
	check->vm.code = check->code;
	check->vm.traces_known = true;
	for (*passed_count = 0;
	     *passed_count < sizeof(checks) / sizeof(checks[0]);
	     ++*passed_count)
		if (!checks[*passed_count](check))
			return false;
	return true;
}

bool layout_check(lua_State *L, const struct vm_layout *layout,
                  const struct vm_code *code, lua_CFunction self,
                  uint64_t *global_state, bool *traces_compared,
                  struct check_failure *failure)
{
	struct check check = {.L = L,
	                      .layout = layout,
	                      .code = code,
	                      .self = self,
	                      .thread = (uint64_t)L,
	                      .failure = failure};

	if (!check_all(&check))
		return false;
	*global_state = check.vm.global_state;
	*traces_compared = check.traces_compared;
	return true;
}
