// SPDX-License-Identifier: MIT
/*
 * Object symbols: from libelf's tables to sorted arrays of our own. Runs on
 * the writer thread.
 *
 * libelf may hand out whatever a damaged file holds, so every index and
 * address that comes from there is checked here.
 */
#include "object_symbols.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

struct function {
	uint64_t start;
	uint64_t end;
	uint64_t reach; /* highest end of this and all functions before it */
	uint32_t name;  /* offset in names */
	uint8_t binding_rank; /* 0: global, 1: weak, 2: local */
	bool is_sized;        /* else end is a guess: that of its section */
};

struct code_segment {
	uint64_t file_offset;
	uint64_t bytes;
	uint64_t address;
};

struct object_symbols {
	size_t segment_count;
	size_t function_count;
	size_t names_bytes;
	struct code_segment *segments;
	struct function *functions;
	char *names; /* terminated strings */
};

/* --- reading ------------------------------------------------------------- */

static bool is_function(const GElf_Sym *symbol)
{
	int type = GELF_ST_TYPE(symbol->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) &&
	       symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0;
}

static uint8_t binding_rank(const GElf_Sym *symbol)
{
	switch (GELF_ST_BIND(symbol->st_info)) {
	case STB_LOCAL:
		return 1;
	case STB_WEAK:
		return 2;
	default:
		return 0;
	}
}

static uint64_t section_end(Elf *elf, const GElf_Sym *symbol)
{
	GElf_Shdr header;
	Elf_Scn *section = elf_getscn(elf, symbol->st_shndx);

	if (symbol->st_shndx >= SHN_LORESERVE || !section ||
	    !gelf_getshdr(section, &header))
		return symbol->st_value + 1;
	return header.sh_addr + header.sh_size;
}

static const char *symbol_name(Elf *elf, const GElf_Shdr *table,
                               const GElf_Sym *symbol)
{
	const char *name = elf_strptr(elf, table->sh_link, symbol->st_name);

	return name && name[0] != '\0' ? name : NULL;
}

struct table {
	Elf_Data *data;
	GElf_Shdr header;
	size_t function_count;
	size_t names_bytes;
};

/* Finds the table of the given type and counts what it will take. */
static bool find_table(Elf *elf, GElf_Word type, struct table *table)
{
	Elf_Scn *section = NULL;
	GElf_Sym symbol;

	*table = (struct table){0};
	while ((section = elf_nextscn(elf, section)) != NULL)
		if (gelf_getshdr(section, &table->header) &&
		    table->header.sh_type == type)
			break;
	if (!section || !(table->data = elf_getdata(section, NULL)))
		return false;
	for (int i = 0; gelf_getsym(table->data, i, &symbol); i++) {
		const char *name;

		if (!is_function(&symbol) ||
		    !(name = symbol_name(elf, &table->header, &symbol)))
			continue;
		table->function_count++;
		table->names_bytes += strlen(name) + 1;
	}
	return table->function_count > 0;
}

static void copy_functions(struct object_symbols *symbols, Elf *elf,
                           const struct table *table)
{
	GElf_Sym symbol;

	for (int i = 0; gelf_getsym(table->data, i, &symbol) &&
	                symbols->function_count < table->function_count;
	     i++) {
		struct function *function =
			&symbols->functions[symbols->function_count];
		const char *name;
		size_t bytes;

		if (!is_function(&symbol) ||
		    !(name = symbol_name(elf, &table->header, &symbol)))
			continue;
		bytes = strlen(name) + 1;
		*function = (struct function){
			.start = symbol.st_value,
			.end = symbol.st_value + symbol.st_size,
			.name = (uint32_t)symbols->names_bytes,
			.binding_rank = binding_rank(&symbol),
			.is_sized = symbol.st_size != 0,
		};
		if (!function->is_sized)
			function->end = section_end(elf, &symbol);
		if (function->end <= function->start)
			continue;
		memcpy(symbols->names + symbols->names_bytes, name, bytes);
		symbols->names_bytes += bytes;
		symbols->function_count++;
	}
}

static bool read_segments(struct object_symbols *symbols, Elf *elf)
{
	size_t count;
	GElf_Phdr header;

	if (elf_getphdrnum(elf, &count) != 0 || count == 0)
		return false;
	symbols->segments = calloc(count, sizeof(*symbols->segments));
	if (!symbols->segments)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(elf, (int)i, &header) ||
		    header.p_type != PT_LOAD || !(header.p_flags & PF_X))
			continue;
		symbols->segments[symbols->segment_count++] =
			(struct code_segment){header.p_offset, header.p_filesz,
		                              header.p_vaddr};
	}
	return true;
}

/* --- sorting ------------------------------------------------------------- */

static size_t underscore_count(const char *name)
{
	return strspn(name, "_");
}

/* Positive if left is the better name for the same start. */
static int compare_names(const char *names, const struct function *left,
                         const struct function *right)
{
	const char *a = names + left->name, *b = names + right->name;
	size_t a_count = underscore_count(a), b_count = underscore_count(b);

	if (left->is_sized != right->is_sized)
		return left->is_sized ? 1 : -1;
	if (left->binding_rank != right->binding_rank)
		return left->binding_rank < right->binding_rank ? 1 : -1;
	if (a_count != b_count)
		return a_count < b_count ? 1 : -1;
	if (strlen(a) != strlen(b))
		return strlen(a) > strlen(b) ? 1 : -1;
	return strcmp(b, a);
}

/* The best name comes last of those that start at one address. */
static int compare_functions(const void *a, const void *b, void *names)
{
	const struct function *left = a, *right = b;

	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return compare_names(names, left, right);
}

/* A function without a size goes up to the next one. */
static void end_unsized(struct object_symbols *symbols)
{
	struct function *functions = symbols->functions;
	uint64_t next_start = UINT64_MAX;

	for (size_t i = symbols->function_count; i-- > 0;) {
		if (!functions[i].is_sized && functions[i].end > next_start)
			functions[i].end = next_start;
		if (i > 0 && functions[i - 1].start != functions[i].start)
			next_start = functions[i].start;
	}
}

/* Of several functions with the same bytes only the last one is found. */
static void drop_aliases(struct object_symbols *symbols)
{
	struct function *functions = symbols->functions;
	size_t kept = 0;

	for (size_t i = 0; i < symbols->function_count; i++) {
		if (kept > 0 &&
		    functions[kept - 1].start == functions[i].start &&
		    functions[kept - 1].end == functions[i].end)
			kept--;
		functions[kept++] = functions[i];
	}
	symbols->function_count = kept;
}

static void sort_functions(struct object_symbols *symbols)
{
	uint64_t reach = 0;

	qsort_r(symbols->functions, symbols->function_count,
	        sizeof(*symbols->functions), compare_functions, symbols->names);
	end_unsized(symbols);
	drop_aliases(symbols);
	for (size_t i = 0; i < symbols->function_count; i++) {
		if (symbols->functions[i].end > reach)
			reach = symbols->functions[i].end;
		symbols->functions[i].reach = reach;
	}
}

/* --- interface ----------------------------------------------------------- */

static bool read_functions(struct object_symbols *symbols, Elf *elf,
                           size_t bytes_max)
{
	struct table table;
	size_t bytes;

	if (!find_table(elf, SHT_SYMTAB, &table) &&
	    !find_table(elf, SHT_DYNSYM, &table))
		return true;
	bytes = table.function_count * sizeof(*symbols->functions);
	if (bytes + table.names_bytes > bytes_max ||
	    table.names_bytes > UINT32_MAX)
		return true;
	symbols->functions = malloc(bytes);
	symbols->names = malloc(table.names_bytes);
	if (!symbols->functions || !symbols->names)
		return false;
	copy_functions(symbols, elf, &table);
	sort_functions(symbols);
	return true;
}

static struct object_symbols *read_elf(Elf *elf, size_t bytes_max)
{
	struct object_symbols *symbols = NULL;

	if (elf && elf_kind(elf) == ELF_K_ELF)
		symbols = calloc(1, sizeof(*symbols));
	if (symbols && (!read_segments(symbols, elf) ||
	                !read_functions(symbols, elf, bytes_max))) {
		object_symbols_free(symbols);
		symbols = NULL;
	}
	elf_end(elf);
	return symbols;
}

struct object_symbols *object_symbols_read(int fd, size_t bytes_max)
{
	elf_version(EV_CURRENT);
	return read_elf(elf_begin(fd, ELF_C_READ, NULL), bytes_max);
}

struct object_symbols *
object_symbols_read_image(void *image, size_t image_bytes, size_t bytes_max)
{
	elf_version(EV_CURRENT);
	return read_elf(elf_memory(image, image_bytes), bytes_max);
}

void object_symbols_free(struct object_symbols *symbols)
{
	if (!symbols)
		return;
	free(symbols->segments);
	free(symbols->functions);
	free(symbols->names);
	free(symbols);
}

size_t object_symbols_held_bytes(const struct object_symbols *symbols)
{
	return symbols->function_count * sizeof(*symbols->functions) +
	       symbols->names_bytes;
}

bool object_symbols_address(const struct object_symbols *symbols,
                            uint64_t file_offset, uint64_t *address)
{
	for (size_t i = 0; i < symbols->segment_count; i++) {
		const struct code_segment *segment = &symbols->segments[i];
		uint64_t within = file_offset - segment->file_offset;

		if (file_offset >= segment->file_offset &&
		    within < segment->bytes) {
			*address = segment->address + within;
			return true;
		}
	}
	return false;
}

/* Number of functions that start at or below the address. */
static size_t count_starts(const struct object_symbols *symbols,
                           uint64_t address)
{
	size_t low = 0, high = symbols->function_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->functions[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool object_symbols_find(const struct object_symbols *symbols, uint64_t address,
                         struct object_symbol *symbol)
{
	for (size_t i = count_starts(symbols, address); i-- > 0;) {
		const struct function *function = &symbols->functions[i];

		if (function->reach <= address)
			return false;
		if (function->end > address) {
			*symbol = (struct object_symbol){
				function->start, function->end,
				symbols->names + function->name};
			return true;
		}
	}
	return false;
}
