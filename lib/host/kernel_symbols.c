// SPDX-License-Identifier: MIT
/* Kernel symbols; see kernel_symbols.h. On the writer thread. */
#include "kernel_symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host_symbols.h"

#define KALLSYMS "/proc/kallsyms"

/* Kernels have some 100,000 functions; what is beyond is left out. */
#define SYMBOLS_MAX     (1u << 20)
#define NAMES_BYTES_MAX ((size_t)64 << 20)
#define LINE_BYTES      512 /* KSYM_NAME_LEN, and a module's name */

/* Behind the last symbol of an area nothing is said of a function's end. */
#define FUNCTION_BYTES_MAX (UINT64_C(1) << 20)

struct kernel_symbol {
	uint64_t start;
	size_t name; /* where it is in names */
};

static void *grow(void *memory, size_t *capacity, size_t needed, size_t size)
{
	size_t wanted = *capacity > 0 ? *capacity : 4096;
	void *grown;

	if (needed <= *capacity)
		return memory;
	while (wanted < needed)
		wanted *= 2;
	grown = realloc(memory, wanted * size);
	if (grown)
		*capacity = wanted;
	return grown;
}

/* False: out of memory, or too many. */
static bool add_symbol(struct kernel_symbols *symbols, uint64_t start,
                       const char *name)
{
	size_t bytes = strlen(name) + 1;
	void *grown;

	if (symbols->count == SYMBOLS_MAX ||
	    symbols->names_bytes + bytes > NAMES_BYTES_MAX)
		return false;
	grown = grow(symbols->list, &symbols->capacity, symbols->count + 1,
	             sizeof(*symbols->list));
	if (!grown)
		return false;
	symbols->list = grown;
	grown = grow(symbols->names, &symbols->names_capacity,
	             symbols->names_bytes + bytes, 1);
	if (!grown)
		return false;
	symbols->names = grown;
	memcpy(symbols->names + symbols->names_bytes, name, bytes);
	symbols->list[symbols->count++] =
		(struct kernel_symbol){start, symbols->names_bytes};
	symbols->names_bytes += bytes;
	return true;
}

/* "ffffffff81000000 T _stext", with a module's name behind it. All addresses are
 * 0 where kernel.kptr_restrict hides them. */
static bool add_line(struct kernel_symbols *symbols, char *line)
{
	char *type;
	uint64_t start = strtoull(line, &type, 16);

	if (!is_kernel_address(start) || type[0] != ' ' || type[1] == '\0' ||
	    !strchr("tTwW", type[1]) || type[2] != ' ')
		return true;
	type[3 + strcspn(type + 3, "\t\n")] = '\0';
	return add_symbol(symbols, start, type + 3);
}

static int compare(const void *left, const void *right)
{
	const struct kernel_symbol *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	/* As the kernel lists them: of several names the last one counts. */
	return a->name < b->name ? -1 : a->name > b->name;
}

static void read_symbols(struct kernel_symbols *symbols)
{
	FILE *file = fopen(KALLSYMS, "re");
	char line[LINE_BYTES];

	symbols->is_read = true;
	if (!file)
		return;
	while (fgets(line, sizeof(line), file) && add_line(symbols, line))
		;
	fclose(file);
	if (symbols->count > 0)
		qsort(symbols->list, symbols->count, sizeof(*symbols->list),
		      compare);
}

void kernel_symbols_find(struct kernel_symbols *symbols, uint64_t address,
                         struct host_symbol *symbol)
{
	size_t low = 0, high;

	if (!symbols->is_read)
		read_symbols(symbols);
	*symbol = (struct host_symbol){.start = address, .end = address + 1};
	strcpy(symbol->name, "[kernel]");
	high = symbols->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->list[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 ||
	    address - symbols->list[low - 1].start >= FUNCTION_BYTES_MAX)
		return;
	symbol->start = symbols->list[low - 1].start;
	if (low < symbols->count)
		symbol->end = symbols->list[low].start;
	snprintf(symbol->name, sizeof(symbol->name), "%s",
	         symbols->names + symbols->list[low - 1].name);
}

size_t kernel_symbols_held_bytes(const struct kernel_symbols *symbols)
{
	return symbols->capacity * sizeof(*symbols->list) +
	       symbols->names_capacity;
}

void kernel_symbols_free(struct kernel_symbols *symbols)
{
	free(symbols->list);
	free(symbols->names);
	*symbols = (struct kernel_symbols){0};
}
