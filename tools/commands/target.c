// SPDX-License-Identifier: MIT
/* The memory and objects of another process; see target.h. */
#include "target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYMBOL_NAME_MAX 64
#define SEGMENTS_MAX    64
#define DYNAMIC_MAX     256
#define CHAIN_MAX       65536

/* ---- memory ----------------------------------------------------------------- */

bool target_read(const struct target *target, uint64_t address, void *to,
                 size_t bytes)
{
	return pread(target->memory, to, bytes, (off_t)address) ==
	       (ssize_t)bytes;
}

bool target_write(const struct target *target, uint64_t address,
                  const void *from, size_t bytes)
{
	return pwrite(target->memory, from, bytes, (off_t)address) ==
	       (ssize_t)bytes;
}

static FILE *open_maps(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	return fopen(path, "re");
}

uint64_t target_mapping_end(const struct target *target, uint64_t address)
{
	FILE *maps = open_maps(target->pid);
	char line[4400];
	unsigned long start, end;
	uint64_t found = 0;

	while (maps && !found && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 &&
		    address >= start && address < end)
			found = end;
	if (maps)
		fclose(maps);
	return found;
}

/* ---- objects ---------------------------------------------------------------- */

static bool add_code(struct target *target, const struct target_code *code)
{
	struct target_code *codes =
		realloc(target->codes,
	                (target->code_count + 1) * sizeof(*target->codes));

	if (!codes)
		return false;
	target->codes = codes;
	codes[target->code_count++] = *code;
	return true;
}

static void copy_name(char name[TARGET_NAME_BYTES], const char *path)
{
	const char *slash = strrchr(path, '/');

	snprintf(name, TARGET_NAME_BYTES, "%.250s", slash ? slash + 1 : "");
	name[strcspn(name, "\n ")] = '\0';
}

/* The first mapping of a file has its header; others of it follow. */
static bool read_codes(struct target *target, FILE *maps)
{
	unsigned long start, end, offset, inode, base = 0, base_inode = 0;
	char line[4400], rights[8];
	int path;

	while (fgets(line, sizeof(line), maps)) {
		struct target_code code;

		if (sscanf(line, "%lx-%lx %7s %lx %*x:%*x %lu %n", &start, &end,
		           rights, &offset, &inode, &path) != 5)
			continue;
		if (inode != base_inode || offset == 0) {
			base = start - offset;
			base_inode = inode;
		}
		if (rights[2] != 'x' || inode == 0)
			continue;
		code = (struct target_code){
			.start = start, .end = end, .base = base};
		copy_name(code.name, line + path);
		if (!add_code(target, &code))
			return false;
	}
	return true;
}

int target_open(struct target *target, pid_t pid)
{
	char path[64];
	FILE *maps;
	int code = 0;

	*target = (struct target){.pid = pid, .memory = -1};
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	target->memory = open(path, O_RDWR | O_CLOEXEC);
	if (target->memory < 0)
		return errno;
	maps = open_maps(pid);
	if (!maps)
		code = errno;
	else if (!read_codes(target, maps))
		code = ENOMEM;
	if (maps)
		fclose(maps);
	if (code != 0)
		target_close(target);
	return code;
}

void target_close(struct target *target)
{
	if (target->memory >= 0)
		close(target->memory);
	free(target->codes);
	*target = (struct target){.memory = -1};
}

const struct target_code *target_code_at(const struct target *target,
                                         uint64_t address)
{
	for (size_t i = 0; i < target->code_count; i++)
		if (address >= target->codes[i].start &&
		    address < target->codes[i].end)
			return &target->codes[i];
	return NULL;
}

bool target_is_c_library(const struct target_code *code)
{
	static const char *const names[] = {
		"libc.so.",       "libc-2.",       "ld-linux",  "ld-2.",
		"libpthread.so.", "libpthread-2.", "libdl.so.", "libdl-2."};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(code->name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

const struct target_code *target_libc(const struct target *target)
{
	for (size_t i = 0; i < target->code_count; i++)
		if (strncmp(target->codes[i].name, "libc.so.6", 9) == 0 ||
		    strncmp(target->codes[i].name, "libc-2.", 7) == 0)
			return &target->codes[i];
	return NULL;
}

/* ---- symbols ---------------------------------------------------------------- */

/* The tables of an object, as its loader has left them in memory. */
struct symbol_tables {
	uint64_t load_address; /* added to addresses of the file */
	uint64_t symbols, strings, hash;
};

static bool find_dynamic(const struct target *target, uint64_t base,
                         uint64_t *load_address, uint64_t *dynamic)
{
	Elf64_Ehdr header;
	Elf64_Phdr segments[SEGMENTS_MAX];
	uint64_t first = UINT64_MAX, offset = 0;

	if (!target_read(target, base, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_phnum > SEGMENTS_MAX ||
	    !target_read(target, base + header.e_phoff, segments,
	                 header.e_phnum * sizeof(segments[0])))
		return false;
	for (size_t i = 0; i < header.e_phnum; i++) {
		if (segments[i].p_type == PT_LOAD &&
		    segments[i].p_vaddr < first)
			first = segments[i].p_vaddr & ~UINT64_C(4095);
		if (segments[i].p_type == PT_DYNAMIC)
			offset = segments[i].p_vaddr;
	}
	*load_address = base - first;
	*dynamic = *load_address + offset;
	return first != UINT64_MAX && offset != 0;
}

/* The loader makes addresses of most of them, but not of all. */
static uint64_t relocated(uint64_t load_address, uint64_t value)
{
	return value < load_address ? value + load_address : value;
}

static bool read_tables(const struct target *target, uint64_t base,
                        struct symbol_tables *tables)
{
	uint64_t dynamic, at;
	Elf64_Dyn entry;

	*tables = (struct symbol_tables){0};
	if (!find_dynamic(target, base, &tables->load_address, &dynamic))
		return false;
	for (int i = 0; i < DYNAMIC_MAX; i++) {
		if (!target_read(target, dynamic + (uint64_t)i * sizeof(entry),
		                 &entry, sizeof(entry)) ||
		    entry.d_tag == DT_NULL)
			break;
		at = relocated(tables->load_address, entry.d_un.d_ptr);
		if (entry.d_tag == DT_SYMTAB)
			tables->symbols = at;
		else if (entry.d_tag == DT_STRTAB)
			tables->strings = at;
		else if (entry.d_tag == DT_GNU_HASH)
			tables->hash = at;
	}
	return tables->symbols && tables->strings && tables->hash;
}

static bool is_function(const struct target *target,
                        const struct symbol_tables *tables, uint32_t index,
                        const char *name, uint64_t *address)
{
	char found[SYMBOL_NAME_MAX] = "";
	size_t bytes = strlen(name) + 1;
	Elf64_Sym symbol;

	if (!target_read(target,
	                 tables->symbols + (uint64_t)index * sizeof(symbol),
	                 &symbol, sizeof(symbol)) ||
	    ELF64_ST_TYPE(symbol.st_info) != STT_FUNC ||
	    symbol.st_shndx == SHN_UNDEF ||
	    !target_read(target, tables->strings + symbol.st_name, found,
	                 bytes) ||
	    memcmp(found, name, bytes) != 0)
		return false;
	*address = tables->load_address + symbol.st_value;
	return true;
}

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

/* DT_GNU_HASH: four numbers, a filter, the buckets, and the hashes of all
 * symbols from the first one on, whose lowest bit ends a bucket's. */
static uint64_t look_up(const struct target *target,
                        const struct symbol_tables *tables, const char *name)
{
	uint32_t head[4], index, hash = hash_of(name), found;
	uint64_t buckets, chains, address;

	if (!target_read(target, tables->hash, head, sizeof(head)) ||
	    head[0] == 0)
		return 0;
	buckets = tables->hash + sizeof(head) + UINT64_C(8) * head[2];
	chains = buckets + UINT64_C(4) * head[0];
	if (!target_read(target, buckets + UINT64_C(4) * (hash % head[0]),
	                 &index, sizeof(index)) ||
	    index < head[1])
		return 0;
	for (int i = 0; i < CHAIN_MAX; i++, index++) {
		if (!target_read(target,
		                 chains + UINT64_C(4) * (index - head[1]),
		                 &found, sizeof(found)))
			return 0;
		if ((found | 1) == (hash | 1) &&
		    is_function(target, tables, index, name, &address))
			return address;
		if (found & 1)
			return 0;
	}
	return 0;
}

uint64_t target_find_symbol(const struct target *target,
                            const struct target_code *code, const char *name)
{
	struct symbol_tables tables;

	return strlen(name) < SYMBOL_NAME_MAX &&
	                       read_tables(target, code->base, &tables)
	               ? look_up(target, &tables, name)
	               : 0;
}

uint64_t target_find_any_symbol(const struct target *target, const char *name)
{
	uint64_t address = 0;

	for (size_t i = 0; i < target->code_count && address == 0; i++)
		address = target_find_symbol(target, &target->codes[i], name);
	return address;
}

uint64_t target_find_bytes(const struct target *target,
                           const struct target_code *code, const void *bytes,
                           size_t count)
{
	size_t size = code->end - code->start;
	uint8_t *contents = malloc(size);
	const uint8_t *found = NULL;
	uint64_t address = 0;

	if (contents && target_read(target, code->start, contents, size))
		found = memmem(contents, size, bytes, count);
	if (found)
		address = code->start + (uint64_t)(found - contents);
	free(contents);
	return address;
}
