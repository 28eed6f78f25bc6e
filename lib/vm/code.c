// SPDX-License-Identifier: MIT
/*
 * Finds the VM's machine code by the shape of its unwind rule, which all
 * builds since 2017 share. Works on stripped libraries.
 */
#include "code.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "../host/unwind_table.h"
#include "../lmisclib.h"

/* The smallest VM seen has 14 kB, the second largest function 1 kB. */
#define VM_CODE_BYTES_MIN 10000

/* push rbx, r15, r14; sub rsp, 40: behind the optional push rbp. */
static const uint8_t prologue_bytes[VM_PROLOGUE_BYTES] = {
	0x53, 0x41, 0x57, 0x41, 0x56, 0x48, 0x83, 0xec, 0x28};
/* add rsp, 40; pop r14, r15, rbx, rbp; ret */
static const uint8_t epilogue_bytes[VM_EPILOGUE_BYTES] = {
	0x48, 0x83, 0xc4, 0x28, 0x41, 0x5e, 0x41, 0x5f, 0x5b, 0x5d, 0xc3};

struct known_code {
	struct vm_code code;
	struct known_code *next;
};

static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
static struct known_code *known;

static bool has_vm_rule(const struct unwind_row *row)
{
	return !(row->flags & ~UNWIND_FUNCTION) &&
	       row->cfa_register == SAVED_COUNT &&
	       row->cfa_offset == CFRAME_BYTES && row->saved[SAVED_RBP] == -2 &&
	       row->saved[SAVED_RBX] == -3 && row->saved[SAVED_R15] == -4 &&
	       row->saved[SAVED_R14] == -5;
}

static void find_frame_edges(struct vm_code *code)
{
	uint64_t address;

	for (address = code->start;
	     address + sizeof(epilogue_bytes) <= code->end; address++) {
		const void *bytes = (const void *)address;

		if (!memcmp(bytes, prologue_bytes, sizeof(prologue_bytes)) &&
		    code->prologue_count < VM_PROLOGUES_MAX)
			code->prologues[code->prologue_count++] = address;
		if (!memcmp(bytes, epilogue_bytes, sizeof(epilogue_bytes)) &&
		    code->epilogue_count < VM_EPILOGUES_MAX)
			code->epilogues[code->epilogue_count++] = address;
	}
}

static void format_build_id(char *text, const uint8_t *bytes, size_t count)
{
	size_t i;

	for (i = 0; i < count && i < 20; i++)
		sprintf(text + 2 * i, "%02x", bytes[i]);
}

static void read_build_id(struct vm_code *code, const uint8_t *notes,
                          size_t bytes)
{
	const ElfW(Nhdr) * note;
	size_t name_bytes, data_bytes;

	while (bytes >= sizeof(*note)) {
		note = (const void *)notes;
		name_bytes = (note->n_namesz + 3u) & ~3u;
		data_bytes = (note->n_descsz + 3u) & ~3u;
		if (bytes - sizeof(*note) < name_bytes ||
		    bytes - sizeof(*note) - name_bytes < data_bytes)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    !memcmp(note + 1, "GNU", 4)) {
			format_build_id(code->build_id,
			                (const uint8_t *)(note + 1) +
			                        name_bytes,
			                note->n_descsz);
			return;
		}
		notes += sizeof(*note) + name_bytes + data_bytes;
		bytes -= sizeof(*note) + name_bytes + data_bytes;
	}
}

static int find_build_id(struct dl_phdr_info *info, size_t size, void *data)
{
	struct vm_code *code = data;
	const ElfW(Phdr) * segment;
	bool holds_code = false;
	int i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++) {
		segment = &info->dlpi_phdr[i];
		if (segment->p_type == PT_LOAD &&
		    code->start - info->dlpi_addr - segment->p_vaddr <
		            segment->p_memsz)
			holds_code = true;
	}
	for (i = 0; holds_code && i < info->dlpi_phnum; i++) {
		segment = &info->dlpi_phdr[i];
		if (segment->p_type == PT_NOTE && !code->build_id[0])
			read_build_id(code,
			              (const uint8_t *)(info->dlpi_addr +
			                                segment->p_vaddr),
			              segment->p_memsz);
	}
	return holds_code;
}

static struct known_code *find_new(uint64_t address, struct error *error)
{
	const struct unwind_tables *tables = unwind_tables_current();
	const struct unwind_row *row = unwind_find_row(tables, address, NULL);
	struct known_code *found;
	uint64_t start, end, ffi_start;

	if (!row || !has_vm_rule(row) ||
	    !unwind_find_function(address, &start, &end) ||
	    end - start < VM_CODE_BYTES_MIN) {
		error_set(error, PROFILE_ERRUSE, ENOTSUP,
		          "the code that called this function is not a LuaJIT "
		          "interpreter that is known (its unwind rule is not "
		          "that of LuaJIT 2.1 for x86-64)");
		return NULL;
	}
	found = calloc(1, sizeof(*found));
	if (!found) {
		error_set(error, PROFILE_ERRMEM, ENOMEM, "out of memory");
		return NULL;
	}
	found->code.start = start;
	found->code.end = end;
	if (!unwind_find_function(end, &ffi_start, &found->code.ffi_call_end) ||
	    ffi_start != end)
		found->code.ffi_call_end = end;
	find_frame_edges(&found->code);
	dl_iterate_phdr(find_build_id, &found->code);
	return found;
}

const struct vm_code *vm_code_find(uint64_t address, struct error *error)
{
	struct known_code *found;

	pthread_mutex_lock(&known_lock);
	for (found = known; found; found = found->next)
		if (address >= found->code.start && address < found->code.end)
			break;
	if (!found) {
		found = find_new(address, error);
		if (found) {
			found->next = known;
			known = found;
		}
	}
	pthread_mutex_unlock(&known_lock);
	return found ? &found->code : NULL;
}
