// SPDX-License-Identifier: MIT
/* Symbolizer on top of libdwfl; see symbolize.h. */
#include "symbolize.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "id_map.h"
#include "memory.h"

#define BUILD_ID_BYTES_MAX 64
#define DEBUG_DIRECTORY    "/usr/lib/debug"
/* Where libdwfl looks: checksums count, beside the file, in .debug, here. */
#define DEBUG_PATH "+:.debug:"

/* A file, as it was when it was mapped. */
struct code_object {
	char *path;
	uint8_t build_id[BUILD_ID_BYTES_MAX];
	size_t build_id_bytes;
	bool is_opened; /* or it was tried */
	Dwfl *dwfl;     /* NULL: the file cannot be used */
	Dwfl_Module *module;
	GElf_Addr bias; /* address in the module - address in the file */
	struct code_object *next;
};

struct placed_code {
	uint64_t start, bytes;
	uint64_t file_address;
	struct code_object *object;
};

struct symbolizer {
	struct symbolize_options options;
	char *debug_path; /* as libdwfl wants it */
	Dwfl_Callbacks callbacks;
	struct code_object *objects;
	struct placed_code *mappings; /* later ones replace earlier ones */
	size_t mapping_count, mapping_capacity;
	/* Object, start of a symbol -> number of the best one there, more 1. */
	struct id_map best_symbols;
};

/* All files are given; nothing is to be found by name. */
static int find_no_elf(Dwfl_Module *module, void **user, const char *name,
                       Dwarf_Addr base, char **file, Elf **elf)
{
	(void)module;
	(void)user;
	(void)name;
	(void)base;
	(void)file;
	(void)elf;
	return -1;
}

static char *join_text(const char *a, const char *b, const char *c)
{
	size_t room = strlen(a) + strlen(b) + strlen(c) + 1;
	char *text = memory_zeroed(room, 1);

	snprintf(text, room, "%s%s%s", a, b, c);
	return text;
}

static const char *sysroot(const struct symbolizer *symbolizer)
{
	return symbolizer->options.sysroot ? symbolizer->options.sysroot : "";
}

struct symbolizer *symbolizer_open(const struct symbolize_options *options)
{
	struct symbolizer *symbolizer = memory_zeroed(1, sizeof(*symbolizer));

	elf_version(EV_CURRENT);
	symbolizer->options = *options;
	symbolizer->debug_path =
		join_text(DEBUG_PATH, sysroot(symbolizer), DEBUG_DIRECTORY);
	symbolizer->callbacks = (Dwfl_Callbacks){
		.find_elf = find_no_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
		.debuginfo_path = &symbolizer->debug_path,
	};
	return symbolizer;
}

void symbolizer_close(struct symbolizer *symbolizer)
{
	if (symbolizer == NULL)
		return;
	while (symbolizer->objects != NULL) {
		struct code_object *object = symbolizer->objects;

		symbolizer->objects = object->next;
		if (object->dwfl != NULL)
			dwfl_end(object->dwfl);
		free(object->path);
		free(object);
	}
	free(symbolizer->mappings);
	free(symbolizer->debug_path);
	id_map_free(&symbolizer->best_symbols);
	free(symbolizer);
}

/* ---- mappings ------------------------------------------------------------ */

static bool is_same_file(const struct code_object *object,
                         const struct code_mapping *mapping)
{
	return !strcmp(object->path, mapping->path) &&
	       object->build_id_bytes == mapping->build_id_bytes &&
	       (mapping->build_id_bytes == 0 ||
	        !memcmp(object->build_id, mapping->build_id,
	                mapping->build_id_bytes));
}

static struct code_object *find_object(struct symbolizer *symbolizer,
                                       const struct code_mapping *mapping)
{
	struct code_object *object = symbolizer->objects;

	while (object != NULL && !is_same_file(object, mapping))
		object = object->next;
	if (object != NULL)
		return object;
	object = memory_zeroed(1, sizeof(*object));
	object->path = join_text(mapping->path, "", "");
	object->build_id_bytes = mapping->build_id_bytes;
	if (mapping->build_id_bytes > 0)
		memcpy(object->build_id, mapping->build_id,
		       mapping->build_id_bytes);
	object->next = symbolizer->objects;
	symbolizer->objects = object;
	return object;
}

void symbolizer_add_mapping(struct symbolizer *symbolizer,
                            const struct code_mapping *mapping)
{
	/* Only files have something to read. */
	if (mapping->path[0] != '/' ||
	    mapping->build_id_bytes > BUILD_ID_BYTES_MAX)
		return;
	symbolizer->mappings = memory_grow(
		symbolizer->mappings, &symbolizer->mapping_capacity,
		symbolizer->mapping_count + 1, sizeof(*symbolizer->mappings));
	symbolizer->mappings[symbolizer->mapping_count++] =
		(struct placed_code){mapping->start, mapping->bytes,
	                             mapping->file_address,
	                             find_object(symbolizer, mapping)};
}

static const struct placed_code *
find_mapping(const struct symbolizer *symbolizer, uint64_t address)
{
	for (size_t i = symbolizer->mapping_count; i-- > 0;) {
		const struct placed_code *mapping = &symbolizer->mappings[i];

		if (address - mapping->start < mapping->bytes)
			return mapping;
	}
	return NULL;
}

/* ---- files --------------------------------------------------------------- */

static void notice(const struct symbolizer *symbolizer,
                   const struct code_object *object, const char *what)
{
	char *text;

	if (symbolizer->options.notice == NULL)
		return;
	text = join_text(object->path, ": ", what);
	symbolizer->options.notice(text);
	free(text);
}

static bool has_build_id(const struct code_object *object, int fd)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	const void *build_id;
	ssize_t bytes =
		elf != NULL ? dwelf_elf_gnu_build_id(elf, &build_id) : 0;
	bool same = elf != NULL && elf_kind(elf) == ELF_K_ELF &&
	            bytes == (ssize_t)object->build_id_bytes &&
	            (bytes == 0 ||
	             !memcmp(build_id, object->build_id, (size_t)bytes));

	elf_end(elf);
	return same;
}

/* Opens the file if it is the one that was mapped. -1: it is not there, -2: it
 * is another one. */
static int open_same(const struct code_object *object, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || has_build_id(object, fd))
		return fd;
	close(fd);
	return -2;
}

/* Debug files have symbols, too: they do where the file itself is gone. */
static int open_debug_file(const struct symbolizer *symbolizer,
                           const struct code_object *object)
{
	char id[2 * BUILD_ID_BYTES_MAX + 16] = "/.build-id/";
	char *at = id + strlen(id);
	char *path;
	int fd;

	if (object->build_id_bytes < 2)
		return -1;
	for (size_t i = 0; i < object->build_id_bytes; i++)
		at += sprintf(at, i == 0 ? "%02x/" : "%02x",
		              object->build_id[i]);
	strcpy(at, ".debug");
	path = join_text(sysroot(symbolizer), DEBUG_DIRECTORY, id);
	fd = open_same(object, path);
	free(path);
	return fd;
}

static int open_file(const struct symbolizer *symbolizer,
                     const struct code_object *object)
{
	char *path = join_text(sysroot(symbolizer), object->path, "");
	int fd = open_same(object, path);
	int debug_fd;

	free(path);
	if (fd >= 0)
		return fd;
	debug_fd = open_debug_file(symbolizer, object);
	if (debug_fd >= 0)
		return debug_fd;
	notice(symbolizer, object,
	       fd == -2 ? "replaced since the profile was taken (its build id "
	                  "is another one): only names from the profile itself"
	                : "not found: only names from the profile itself; "
	                  "--sysroot=DIR says where its file is");
	return -1;
}

static bool open_object(const struct symbolizer *symbolizer,
                        struct code_object *object)
{
	int fd;

	if (object->is_opened)
		return object->dwfl != NULL;
	object->is_opened = true;
	fd = open_file(symbolizer, object);
	if (fd < 0)
		return false;
	object->dwfl = dwfl_begin(&symbolizer->callbacks);
	if (object->dwfl != NULL) {
		object->module = dwfl_report_elf(object->dwfl, object->path,
		                                 object->path, fd, 0, true);
		if (object->module != NULL)
			fd = -1; /* libdwfl closes it */
		dwfl_report_end(object->dwfl, NULL, NULL);
	}
	if (fd >= 0)
		close(fd);
	if (object->dwfl != NULL &&
	    (object->module == NULL ||
	     dwfl_module_getelf(object->module, &object->bias) == NULL)) {
		dwfl_end(object->dwfl);
		object->dwfl = NULL;
	}
	return object->dwfl != NULL;
}

/* ---- addresses ----------------------------------------------------------- */

/* The object that holds the address, and where in its module. */
static struct code_object *locate(struct symbolizer *symbolizer,
                                  uint64_t address, GElf_Addr *in_module)
{
	const struct placed_code *mapping = find_mapping(symbolizer, address);

	if (mapping == NULL || !open_object(symbolizer, mapping->object))
		return NULL;
	*in_module = address - mapping->start + mapping->file_address +
	             mapping->object->bias;
	return mapping->object;
}

/* Of two names of the same code, is this the better one? As perf chooses, and
 * the profiler in the process (lib/host/object_symbols.c). */
static bool is_better(const char *name, const GElf_Sym *symbol,
                      const char *other_name, const GElf_Sym *other)
{
	static const int ranks[] = {
		[STB_LOCAL] = 1,
		[STB_GLOBAL] = 0,
		[STB_WEAK] = 2,
	};
	unsigned bind = GELF_ST_BIND(symbol->st_info);
	unsigned other_bind = GELF_ST_BIND(other->st_info);
	int rank = bind <= STB_WEAK ? ranks[bind] : 0;
	int other_rank = other_bind <= STB_WEAK ? ranks[other_bind] : 0;
	size_t underscores = strspn(name, "_");
	size_t other_underscores = strspn(other_name, "_");

	if (rank != other_rank)
		return rank < other_rank;
	if (underscores != other_underscores)
		return underscores < other_underscores;
	if (strlen(name) != strlen(other_name))
		return strlen(name) > strlen(other_name);
	return strcmp(name, other_name) < 0;
}

/* Number of the best symbol for the code of this one, -1 if it has none. */
static int best_symbol(const struct code_object *object, GElf_Addr start,
                       const char *name, const GElf_Sym *symbol)
{
	int count = dwfl_module_getsymtab(object->module);
	GElf_Sym best = *symbol;
	int found = -1;

	for (int i = 0; i < count; i++) {
		GElf_Sym other;
		GElf_Addr other_start;
		const char *other_name =
			dwfl_module_getsym_info(object->module, i, &other,
		                                &other_start, NULL, NULL, NULL);
		int type = GELF_ST_TYPE(other.st_info);

		if (other_name == NULL || other_name[0] == '\0' ||
		    other_start != start || other.st_size != symbol->st_size ||
		    (type != STT_FUNC && type != STT_GNU_IFUNC) ||
		    (found >= 0 && !is_better(other_name, &other, name, &best)))
			continue;
		found = i;
		name = other_name;
		best = other;
	}
	return found;
}

/* The symbol that holds the address. The nearest one below would name code that
 * it does not belong to, so those without a size do not count. */
static const char *find_symbol(struct symbolizer *symbolizer,
                               struct code_object *object, GElf_Addr address)
{
	GElf_Off offset;
	GElf_Sym symbol;
	const char *name = dwfl_module_addrinfo(
		object->module, address, &offset, &symbol, NULL, NULL, NULL);
	GElf_Addr start;
	uint32_t *best;
	bool is_new;

	if (name == NULL || offset >= symbol.st_size)
		return NULL;
	best = id_map_add(&symbolizer->best_symbols, (uintptr_t)object,
	                  address - offset, 0, &is_new);
	if (is_new)
		*best = (uint32_t)(best_symbol(object, address - offset, name,
		                               &symbol) +
		                   1);
	if (*best == 0)
		return name;
	return dwfl_module_getsym_info(object->module, (int)*best - 1, &symbol,
	                               &start, NULL, NULL, NULL);
}

static void find_line(struct code_object *object, GElf_Addr address,
                      struct code_frame *frame)
{
	Dwfl_Line *line = dwfl_module_getsrc(object->module, address);
	int number = 0;

	if (line == NULL)
		return;
	frame->file = dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL);
	frame->line = number > 0 ? (uint32_t)number : 0;
}

bool symbolizer_find(struct symbolizer *symbolizer, uint64_t address,
                     struct code_frame *function)
{
	GElf_Addr in_module;
	struct code_object *object = locate(symbolizer, address, &in_module);

	*function = (struct code_frame){NULL, NULL, 0};
	if (object == NULL)
		return false;
	function->name = find_symbol(symbolizer, object, in_module);
	find_line(object, in_module, function);
	return function->name != NULL || function->file != NULL;
}

/* ---- inlined functions --------------------------------------------------- */

static const char *die_name(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) != NULL ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute) !=
	            NULL)
		name = dwarf_formstring(&attribute);
	return name != NULL ? name : dwarf_diename(die);
}

static void find_call_line(Dwarf_Die *unit, Dwarf_Die *inlined,
                           struct code_frame *caller)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number;
	Dwarf_Files *files;
	size_t count;

	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute),
	                    &number) == 0)
		caller->line = (uint32_t)number;
	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute),
	                    &number) == 0 &&
	    dwarf_getsrcfiles(unit, &files, &count) == 0)
		caller->file = dwarf_filesrc(files, number, NULL, NULL);
}

/* Scopes are innermost first, and so are the frames here. The last one is the
 * function itself, whose name is the symbol's. */
static size_t read_scopes(Dwarf_Die *unit, Dwarf_Die *scopes, int scope_count,
                          struct code_frame *frames)
{
	size_t count = 1; /* frames[0] has the line of the address */

	for (int i = 0; i < scope_count && count < SYMBOLIZE_FRAMES_MAX; i++) {
		int tag = dwarf_tag(&scopes[i]);

		if (tag == DW_TAG_subprogram) {
			frames[count - 1].name = die_name(&scopes[i]);
			return count;
		}
		if (tag != DW_TAG_inlined_subroutine)
			continue;
		frames[count - 1].name = die_name(&scopes[i]);
		frames[count] = (struct code_frame){NULL, NULL, 0};
		find_call_line(unit, &scopes[i], &frames[count]);
		count++;
	}
	return 0;
}

static size_t find_inlined(struct code_object *object, GElf_Addr address,
                           struct code_frame *frames)
{
	Dwarf_Addr bias;
	Dwarf_Die *unit = dwfl_module_addrdie(object->module, address, &bias);
	Dwarf_Die *around = NULL, *scopes = NULL;
	int count;
	size_t frame_count = 0;

	if (unit == NULL)
		return 0;
	/* The first call finds the innermost scope, the second one what that
	 * is inside of. */
	count = dwarf_getscopes(unit, address - bias, &around);
	if (count > 0)
		count = dwarf_getscopes_die(&around[0], &scopes);
	if (count > 0)
		frame_count = read_scopes(unit, scopes, count, frames);
	free(around);
	free(scopes);
	return frame_count;
}

static void reverse(struct code_frame *frames, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		struct code_frame frame = frames[i];

		frames[i] = frames[count - 1 - i];
		frames[count - 1 - i] = frame;
	}
}

size_t symbolizer_find_inlined(struct symbolizer *symbolizer, uint64_t address,
                               struct code_frame frames[SYMBOLIZE_FRAMES_MAX])
{
	GElf_Addr in_module;
	struct code_object *object = locate(symbolizer, address, &in_module);
	const char *symbol;
	size_t count;

	frames[0] = (struct code_frame){NULL, NULL, 0};
	if (object == NULL)
		return 0;
	find_line(object, in_module, &frames[0]);
	symbol = find_symbol(symbolizer, object, in_module);
	count = find_inlined(object, in_module, frames);
	if (count == 0) {
		frames[0].name = symbol;
		return symbol != NULL || frames[0].file != NULL;
	}
	reverse(frames, count);
	if (symbol != NULL)
		frames[0].name = symbol;
	return count;
}
