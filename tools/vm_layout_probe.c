// SPDX-License-Identifier: MIT
/*
 * vm-layout-probe: reads the debug information of a LuaJIT and prints its row
 * for the table of lib/vm/layout.c, or the name of the row that it has there.
 * For work on the profiler; not installed, and nothing at run time needs it.
 *
 * usage: vm-layout-probe FILE
 *
 * FILE is a library or a program with debug information of its own or in a
 * debug package. Exit status: 0 a row was printed or found, 1 it cannot be
 * read, 2 wrong usage.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vm/layout.h"

#define REFERENCE_64   8
#define BYTECODE_COUNT "BC__MAX"

/* The state of C functions follows those of the interpreter; the last one tells
 * whether they are numbered as lib/vm has it. */
#define STATE_OF_C     "LJ_VMST_C"
#define STATE_OF_CFUNC "LJ_VMST_CFUNC" /* Tarantool's name for it */
#define STATE_OF_ASM   "LJ_VMST_ASM"
#define STATES_FROM_C  (VMSTATE_ASM - VMSTATE_C)

/* The VM's assembler part starts here; its unwind rule has the frame's size. */
#define VM_SYMBOL "lj_vm_asm_begin"

/* The structures that a row describes. */
static const char *const struct_names[] = {
	"lua_State", "global_State", "jit_State", "GG_State", "GCproto",
	"GCfuncC",   "GCfuncL",      "GCstr",     "GCupval",  "GCtab",
	"GCtrace",   "SnapShot",     "GCRef",
};
#define STRUCT_COUNT (sizeof(struct_names) / sizeof(struct_names[0]))

struct probe {
	const char *file;
	Dwarf_Die structs[STRUCT_COUNT];
	bool found[STRUCT_COUNT];
	/* Enumerators and size of the VM's C frame; 0: not found yet. */
	Dwarf_Word bytecode_count, state_of_c, state_of_asm;
	Dwarf_Word cframe_bytes;
};

/* One number of a row: a field of a structure, by its path. */
struct field {
	uint16_t *offset;
	const char *structure;
	const char *path; /* "" is the size of the structure */
};

static void fail(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));

static void fail(const char *format, ...)
{
	va_list args;

	fputs("vm-layout-probe: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

/* --- debug information ----------------------------------------------------- */

/* The type behind typedefs and qualifiers. */
static bool peel_type(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attribute;

	return dwarf_attr_integrate(die, DW_AT_type, &attribute) &&
	       dwarf_formref_die(&attribute, type) &&
	       dwarf_peel_type(type, type) == 0;
}

static bool is_complete(Dwarf_Die *die)
{
	return dwarf_tag(die) == DW_TAG_structure_type &&
	       !dwarf_hasattr(die, DW_AT_declaration) &&
	       dwarf_bytesize(die) > 0;
}

/* A structure may have its name itself or by a typedef. */
static void take_struct(struct probe *probe, Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);
	Dwarf_Die type = *die;
	size_t i;

	if (!name ||
	    (dwarf_tag(die) == DW_TAG_typedef && !peel_type(die, &type)) ||
	    !is_complete(&type))
		return;
	for (i = 0; i < STRUCT_COUNT; i++) {
		if (probe->found[i] || strcmp(name, struct_names[i]))
			continue;
		probe->structs[i] = type;
		probe->found[i] = true;
	}
}

static void take_enumeration(struct probe *probe, Dwarf_Die *die)
{
	const struct {
		const char *name;
		Dwarf_Word *value;
	} wanted[] = {
		{BYTECODE_COUNT, &probe->bytecode_count},
		{STATE_OF_C, &probe->state_of_c},
		{STATE_OF_CFUNC, &probe->state_of_c},
		{STATE_OF_ASM, &probe->state_of_asm},
	};
	Dwarf_Attribute attribute;
	Dwarf_Die value;
	size_t i;

	if (dwarf_child(die, &value))
		return;
	do {
		const char *name = dwarf_diename(&value);

		for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
			if (name && !strcmp(name, wanted[i].name) &&
			    dwarf_attr(&value, DW_AT_const_value, &attribute))
				dwarf_formudata(&attribute, wanted[i].value);
	} while (dwarf_siblingof(&value, &value) == 0);
}

static void take_unit(struct probe *probe, Dwarf_Die *unit)
{
	Dwarf_Die die;

	if (dwarf_child(unit, &die))
		return;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_structure_type:
		case DW_TAG_typedef:
			take_struct(probe, &die);
			break;
		case DW_TAG_enumeration_type:
			take_enumeration(probe, &die);
			break;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
}

/* The VM is one function with one rule: CFA = stack pointer + size of frame. */
static void take_cframe(struct probe *probe, Dwfl_Module *module)
{
	int count = dwfl_module_getsymtab(module), i;
	Dwarf_Addr address = 0, bias;
	Dwarf_CFI *rules = dwfl_module_eh_cfi(module, &bias);
	Dwarf_Frame *frame;
	Dwarf_Op *ops;
	size_t op_count;

	for (i = 0; i < count && !address; i++) {
		GElf_Sym symbol;
		const char *name = dwfl_module_getsym_info(
			module, i, &symbol, &address, NULL, NULL, NULL);

		if (!name || strcmp(name, VM_SYMBOL))
			address = 0;
	}
	if (!address || !rules ||
	    dwarf_cfi_addrframe(rules, address - bias, &frame))
		return;
	if (!dwarf_frame_cfa(frame, &ops, &op_count) && op_count == 1 &&
	    ops[0].atom == DW_OP_bregx)
		probe->cframe_bytes = ops[0].number2;
	free(frame);
}

static int take_module(Dwfl_Module *module, void **user, const char *name,
                       Dwarf_Addr start, void *argument)
{
	struct probe *probe = argument;
	Dwarf_Die *unit = NULL;
	Dwarf_Addr bias;

	(void)user;
	(void)name;
	(void)start;
	if (!dwfl_module_getdwarf(module, &bias))
		fail("%s: no debug information (%s); needed is a LuaJIT that "
		     "is built with -g, or its debug package",
		     probe->file, dwfl_errmsg(-1));
	while ((unit = dwfl_module_nextcu(module, unit, &bias)))
		take_unit(probe, unit);
	take_cframe(probe, module);
	return DWARF_CB_OK;
}

static Dwfl *read_file(struct probe *probe)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
	};
	Dwfl *session = dwfl_begin(&callbacks);
	size_t i;

	if (!session || !dwfl_report_offline(session, "", probe->file, -1))
		fail("%s: %s", probe->file, dwfl_errmsg(-1));
	dwfl_report_end(session, NULL, NULL);
	dwfl_getmodules(session, take_module, probe, 0);
	for (i = 0; i < STRUCT_COUNT; i++)
		if (!probe->found[i])
			fail("%s: its debug information has no structure %s: "
			     "not a LuaJIT 2.1 with JIT, or not all of one",
			     probe->file, struct_names[i]);
	if (!probe->bytecode_count)
		fail("%s: its debug information has no enumerator %s",
		     probe->file, BYTECODE_COUNT);
	if (!probe->state_of_c ||
	    probe->state_of_asm != probe->state_of_c + STATES_FROM_C)
		fail("%s: its VM states are not numbered as lib/vm/layout.h "
		     "has them (%s is %d, %s is %d)",
		     probe->file, STATE_OF_C, (int)probe->state_of_c,
		     STATE_OF_ASM, (int)probe->state_of_asm);
	if (!probe->cframe_bytes)
		fail("%s: the size of the VM's C frame is not known: no symbol "
		     "%s, or no unwind rule there",
		     probe->file, VM_SYMBOL);
	return session;
}

/* --- offsets --------------------------------------------------------------- */

static bool find_member(Dwarf_Die *structure, const char *path, size_t length,
                        Dwarf_Die *member, Dwarf_Word *offset);

static Dwarf_Word member_offset(Dwarf_Die *member)
{
	Dwarf_Attribute attribute;
	Dwarf_Word offset = 0;

	/* A member of a union has none. */
	if (dwarf_attr(member, DW_AT_data_member_location, &attribute))
		dwarf_formudata(&attribute, &offset);
	return offset;
}

/* Looks into an unnamed structure or union, too. */
static bool member_matches(Dwarf_Die *candidate, const char *path,
                           size_t length, Dwarf_Die *member, Dwarf_Word *offset)
{
	const char *name = dwarf_diename(candidate);
	Dwarf_Word inner;
	Dwarf_Die type;

	if (name && strlen(name) == length && !strncmp(name, path, length)) {
		*member = *candidate;
		*offset = member_offset(candidate);
		return true;
	}
	if (name || !peel_type(candidate, &type) ||
	    !find_member(&type, path, length, member, &inner))
		return false;
	*offset = member_offset(candidate) + inner;
	return true;
}

static bool find_member(Dwarf_Die *structure, const char *path, size_t length,
                        Dwarf_Die *member, Dwarf_Word *offset)
{
	Dwarf_Die child;

	if (dwarf_child(structure, &child))
		return false;
	do {
		if (dwarf_tag(&child) == DW_TAG_member &&
		    member_matches(&child, path, length, member, offset))
			return true;
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

/* Offset of "gc.total" and the like. */
static bool find_path(Dwarf_Die structure, const char *path, Dwarf_Word *offset)
{
	Dwarf_Word step;
	Dwarf_Die member;
	size_t length;

	for (*offset = 0;; path += length + 1) {
		length = strcspn(path, ".");
		if (!find_member(&structure, path, length, &member, &step))
			return false;
		*offset += step;
		if (!path[length])
			return true;
		if (!peel_type(&member, &structure))
			return false;
	}
}

static Dwarf_Die *find_struct(struct probe *probe, const char *name)
{
	size_t i;

	for (i = 0; strcmp(struct_names[i], name); i++)
		;
	return &probe->structs[i];
}

static bool read_field(struct probe *probe, const struct field *field)
{
	Dwarf_Die *structure = find_struct(probe, field->structure);
	Dwarf_Word offset = (Dwarf_Word)dwarf_bytesize(structure);

	if (field->path[0] && !find_path(*structure, field->path, &offset))
		return false;
	*field->offset = (uint16_t)offset;
	return true;
}

static void read_fields(struct probe *probe, const struct field *fields,
                        size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (!read_field(probe, &fields[i]))
			fail("%s: structure %s has no field %s", probe->file,
			     fields[i].structure, fields[i].path);
}

/* --- the row --------------------------------------------------------------- */

/* What no structure says: the fields of the assembler's frame. Those of a known
 * row with a frame of the same size. */
static void set_cframe(const struct probe *probe, struct vm_layout *row)
{
	size_t i;

	for (i = 0; i < vm_layout_count; i++) {
		if (vm_layouts[i].gc64 != row->gc64 ||
		    vm_layouts[i].cframe.bytes != probe->cframe_bytes)
			continue;
		row->cframe = vm_layouts[i].cframe;
		return;
	}
	fail("%s: the VM's C frame has %d bytes, as in no known build: its "
	     "fields are in the VM's assembler source, and their row in "
	     "lib/vm/layout.c has to be written by hand",
	     probe->file, (int)probe->cframe_bytes);
}

static void read_row(struct probe *probe, struct vm_layout *row)
{
	uint16_t area_bytes;
	const struct field fields[] = {
		{&row->object.type, "GCproto", "gct"},
		{&row->object.thread.status, "lua_State", "status"},
		{&row->object.thread.global, "lua_State", "glref"},
		{&row->object.thread.base, "lua_State", "base"},
		{&row->object.thread.top, "lua_State", "top"},
		{&row->object.thread.stack_limit, "lua_State", "maxstack"},
		{&row->object.thread.stack, "lua_State", "stack"},
		{&row->object.thread.cframe, "lua_State", "cframe"},
		{&row->object.thread.stack_size, "lua_State", "stacksize"},
		{&row->object.function.id, "GCfuncC", "ffid"},
		{&row->object.function.environment, "GCfuncC", "env"},
		{&row->object.function.bytecode, "GCfuncC", "pc"},
		{&row->object.function.upvalues, "GCfuncL", "uvptr"},
		{&row->object.function.c_function, "GCfuncC", "f"},
		{&row->object.prototype.bytecode_count, "GCproto", "sizebc"},
		{&row->object.prototype.constants, "GCproto", "k"},
		{&row->object.prototype.size, "GCproto", "sizept"},
		{&row->object.prototype.chunk_name, "GCproto", "chunkname"},
		{&row->object.prototype.first_line, "GCproto", "firstline"},
		{&row->object.prototype.line_count, "GCproto", "numline"},
		{&row->object.prototype.line_info, "GCproto", "lineinfo"},
		{&row->object.prototype.upvalue_names, "GCproto", "uvinfo"},
		{&row->object.prototype.variables, "GCproto", "varinfo"},
		{&row->object.prototype.bytes, "GCproto", ""},
		{&row->object.upvalue.value, "GCupval", "v"},
		{&row->object.table.array, "GCtab", "array"},
		{&row->object.table.metatable, "GCtab", "metatable"},
		{&row->object.table.nodes, "GCtab", "node"},
		{&row->object.table.node_mask, "GCtab", "hmask"},
		{&row->string.length, "GCstr", "len"},
		{&row->string.bytes, "GCstr", ""},
		{&row->global.alloc_function, "global_State", "allocf"},
		{&row->global.alloc_data, "global_State", "allocd"},
		{&row->global.gc_total, "global_State", "gc.total"},
		{&row->global.gc_pause, "global_State", "gc.pause"},
		{&row->global.gc_step_multiplier, "global_State", "gc.stepmul"},
		{&row->global.hook_mask, "global_State", "hookmask"},
		{&row->global.vmstate, "global_State", "vmstate"},
		{&row->global.main_thread, "global_State", "mainthref"},
		{&row->global.registry, "global_State", "registrytv"},
		{&row->global.hook_function, "global_State", "hookf"},
		{&row->global.panic_function, "global_State", "panic"},
		{&row->global.current_thread, "global_State", "cur_L"},
		{&row->global.jit_base, "global_State", "jit_base"},
		{&row->trace.snapshot_count, "GCtrace", "nsnap"},
		{&row->trace.map_count, "GCtrace", "nsnapmap"},
		{&row->trace.ir, "GCtrace", "ir"},
		{&row->trace.snapshots, "GCtrace", "snap"},
		{&row->trace.map, "GCtrace", "snapmap"},
		{&row->trace.start_prototype, "GCtrace", "startpt"},
		{&row->trace.start_pc, "GCtrace", "startpc"},
		{&row->trace.start_instruction, "GCtrace", "startins"},
		{&row->trace.code_bytes, "GCtrace", "szmcode"},
		{&row->trace.code, "GCtrace", "mcode"},
		{&row->trace.stack_adjust, "GCtrace", "spadjust"},
		{&row->trace.number, "GCtrace", "traceno"},
		{&row->trace.link, "GCtrace", "link"},
		{&row->trace.root, "GCtrace", "root"},
		{&row->snapshot.map_offset, "SnapShot", "mapofs"},
		{&row->snapshot.slot_count, "SnapShot", "nslots"},
		{&row->snapshot.entry_count, "SnapShot", "nent"},
		{&row->snapshot.bytes, "SnapShot", ""},
		{&row->jit.traces, "jit_State", "trace"},
		{&row->jit.trace_count, "jit_State", "sizetrace"},
		{&row->jit.exit_parent, "jit_State", "parent"},
		{&row->jit.exit_number, "jit_State", "exitno"},
		{&row->jit.code_area, "jit_State", "mcarea"},
		{&area_bytes, "jit_State", "szmcarea"},
		{&row->gg_global, "GG_State", "g"},
		{&row->gg_jit, "GG_State", "J"},
		{&row->gg_dispatch, "GG_State", "dispatch"},
	};
	const struct field code_offset = {&row->snapshot.code_offset,
	                                  "SnapShot", "mcofs"};

	read_fields(probe, fields, sizeof(fields) / sizeof(fields[0]));
	if (!read_field(probe, &code_offset))
		row->snapshot.code_offset = SNAPSHOT_NO_CODE_OFFSET;
	if (area_bytes - row->jit.code_area != JIT_CODE_AREA_BYTES_OFFSET)
		fail("%s: the size of a machine code area is %d behind its "
		     "address in jit_State, not %d: lib/vm/trace_sig.c has to "
		     "learn that",
		     probe->file, area_bytes - row->jit.code_area,
		     JIT_CODE_AREA_BYTES_OFFSET);
	row->gc64 = dwarf_bytesize(find_struct(probe, "GCRef")) == REFERENCE_64;
	row->bytecode_count = (uint16_t)probe->bytecode_count;
	row->interpreter_state_count = (uint16_t)probe->state_of_c;
	set_cframe(probe, row);
}

static bool is_same_row(const struct vm_layout *a, const struct vm_layout *b)
{
	return a->gc64 == b->gc64 &&
	       !memcmp(&a->object, &b->object, sizeof(a->object)) &&
	       !memcmp(&a->cframe, &b->cframe, sizeof(a->cframe)) &&
	       !memcmp(&a->string, &b->string, sizeof(a->string)) &&
	       !memcmp(&a->global, &b->global, sizeof(a->global)) &&
	       !memcmp(&a->trace, &b->trace, sizeof(a->trace)) &&
	       !memcmp(&a->snapshot, &b->snapshot, sizeof(a->snapshot)) &&
	       !memcmp(&a->jit, &b->jit, sizeof(a->jit)) &&
	       a->gg_global == b->gg_global && a->gg_jit == b->gg_jit &&
	       a->gg_dispatch == b->gg_dispatch &&
	       a->bytecode_count == b->bytecode_count &&
	       a->interpreter_state_count == b->interpreter_state_count;
}

/* The rows' groups of fields have macros in layout.c: which row has this one? */
#define SAY_LIKE(row, group)                                                   \
	say_like(#group, (const char *)&(row)->group - (const char *)(row),    \
	         sizeof((row)->group), (row))

static void say_like(const char *group, ptrdiff_t offset, size_t bytes,
                     const struct vm_layout *row)
{
	size_t i;

	for (i = 0; i < vm_layout_count; i++)
		if (vm_layouts[i].gc64 == row->gc64 &&
		    !memcmp((const char *)&vm_layouts[i] + offset,
		            (const char *)row + offset, bytes)) {
			printf("\t\t/* .%s as in \"%s\" */\n", group,
			       vm_layouts[i].name);
			return;
		}
}

static void print_object(const struct object_layout *object)
{
	printf("\t\t.object = { .type = %u,\n"
	       "\t\t\t.thread = { .status = %u, .global = %u, .base = %u,\n"
	       "\t\t\t\t.top = %u, .stack_limit = %u, .stack = %u,\n"
	       "\t\t\t\t.cframe = %u, .stack_size = %u },\n"
	       "\t\t\t.function = { .id = %u, .environment = %u,\n"
	       "\t\t\t\t.bytecode = %u, .upvalues = %u,\n"
	       "\t\t\t\t.c_function = %u },\n",
	       object->type, object->thread.status, object->thread.global,
	       object->thread.base, object->thread.top,
	       object->thread.stack_limit, object->thread.stack,
	       object->thread.cframe, object->thread.stack_size,
	       object->function.id, object->function.environment,
	       object->function.bytecode, object->function.upvalues,
	       object->function.c_function);
	printf("\t\t\t.prototype = { .bytecode_count = %u,\n"
	       "\t\t\t\t.constants = %u, .size = %u, .chunk_name = %u,\n"
	       "\t\t\t\t.first_line = %u, .line_count = %u,\n"
	       "\t\t\t\t.line_info = %u, .upvalue_names = %u,\n"
	       "\t\t\t\t.variables = %u, .bytes = %u },\n",
	       object->prototype.bytecode_count, object->prototype.constants,
	       object->prototype.size, object->prototype.chunk_name,
	       object->prototype.first_line, object->prototype.line_count,
	       object->prototype.line_info, object->prototype.upvalue_names,
	       object->prototype.variables, object->prototype.bytes);
	printf("\t\t\t.upvalue = { .value = %u },\n"
	       "\t\t\t.table = { .array = %u, .metatable = %u,\n"
	       "\t\t\t\t.nodes = %u, .node_mask = %u } },\n",
	       object->upvalue.value, object->table.array,
	       object->table.metatable, object->table.nodes,
	       object->table.node_mask);
}

static void print_global(const struct global_layout *global)
{
	printf("\t\t.global = { .alloc_function = %u, .alloc_data = %u,\n"
	       "\t\t\t.gc_total = %u, .gc_pause = %u,\n"
	       "\t\t\t.gc_step_multiplier = %u, .hook_mask = %u,\n"
	       "\t\t\t.vmstate = %u, .main_thread = %u, .registry = %u,\n"
	       "\t\t\t.hook_function = %u, .panic_function = %u,\n"
	       "\t\t\t.current_thread = %u, .jit_base = %u },\n",
	       global->alloc_function, global->alloc_data, global->gc_total,
	       global->gc_pause, global->gc_step_multiplier, global->hook_mask,
	       global->vmstate, global->main_thread, global->registry,
	       global->hook_function, global->panic_function,
	       global->current_thread, global->jit_base);
}

static void print_trace(const struct trace_layout *trace)
{
	printf("\t\t.trace = { .snapshot_count = %u, .map_count = %u,\n"
	       "\t\t\t.ir = %u, .snapshots = %u, .map = %u,\n"
	       "\t\t\t.start_prototype = %u, .start_pc = %u,\n"
	       "\t\t\t.start_instruction = %u, .code_bytes = %u, .code = %u,\n"
	       "\t\t\t.stack_adjust = %u, .number = %u, .link = %u,\n"
	       "\t\t\t.root = %u },\n",
	       trace->snapshot_count, trace->map_count, trace->ir,
	       trace->snapshots, trace->map, trace->start_prototype,
	       trace->start_pc, trace->start_instruction, trace->code_bytes,
	       trace->code, trace->stack_adjust, trace->number, trace->link,
	       trace->root);
}

static void print_row(const struct vm_layout *row)
{
	printf("\t{\n\t\t.name = \"FORK, %s, YEAR-MONTH (COMMIT)\",\n"
	       "\t\t.gc64 = %s,\n",
	       row->gc64 ? "GC64" : "not GC64", row->gc64 ? "true" : "false");
	SAY_LIKE(row, object);
	print_object(&row->object);
	SAY_LIKE(row, cframe);
	printf("\t\t.cframe = { .bytes = %u, .result_count = %u, .thread = "
	       "%u,\n"
	       "\t\t\t.pc = %u, .previous = %u },\n",
	       row->cframe.bytes, row->cframe.result_count, row->cframe.thread,
	       row->cframe.pc, row->cframe.previous);
	SAY_LIKE(row, string);
	printf("\t\t.string = { .length = %u, .bytes = %u },\n",
	       row->string.length, row->string.bytes);
	SAY_LIKE(row, global);
	print_global(&row->global);
	SAY_LIKE(row, trace);
	print_trace(&row->trace);
	SAY_LIKE(row, snapshot);
	printf("\t\t.snapshot = { .map_offset = %u, .code_offset = %u,\n"
	       "\t\t\t.slot_count = %u, .entry_count = %u, .bytes = %u },\n",
	       row->snapshot.map_offset, row->snapshot.code_offset,
	       row->snapshot.slot_count, row->snapshot.entry_count,
	       row->snapshot.bytes);
	SAY_LIKE(row, jit);
	printf("\t\t.jit = { .traces = %u, .trace_count = %u,\n"
	       "\t\t\t.exit_parent = %u, .exit_number = %u,\n"
	       "\t\t\t.code_area = %u },\n",
	       row->jit.traces, row->jit.trace_count, row->jit.exit_parent,
	       row->jit.exit_number, row->jit.code_area);
	printf("\t\t.gg_global = %u, .gg_jit = %u, .gg_dispatch = %u,\n"
	       "\t\t.bytecode_count = %u, .interpreter_state_count = %u,\n"
	       "\t},\n",
	       row->gg_global, row->gg_jit, row->gg_dispatch,
	       row->bytecode_count, row->interpreter_state_count);
}

int main(int argc, char **argv)
{
	struct probe probe = {.file = argc == 2 ? argv[1] : NULL};
	struct vm_layout row = {.name = NULL};
	Dwfl *session;
	size_t i;

	if (!probe.file || probe.file[0] == '-') {
		fputs("usage: vm-layout-probe FILE\n", stderr);
		return 2;
	}
	session = read_file(&probe);
	read_row(&probe, &row);
	dwfl_end(session);
	for (i = 0; i < vm_layout_count; i++) {
		if (is_same_row(&row, &vm_layouts[i])) {
			printf("known: %s\n", vm_layouts[i].name);
			return 0;
		}
	}
	print_row(&row);
	return 0;
}
