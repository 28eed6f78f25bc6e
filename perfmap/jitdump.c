// SPDX-License-Identifier: MIT
/*
 * Jitdump: its records. Never in the signal handler.
 *
 * What the kernel's specification leaves open is settled by what perf 6.1 and
 * 6.12 do with it (tools/perf/util/jitdump.c, genelf.c):
 *  - unwind rules and lines hold for the code record that follows them, so the
 *    three are one write;
 *  - every line entry has its file's name in full: 6.1 does not know the mark
 *    for "the same as before"; a last entry stands at the end of the code;
 *  - .eh_frame comes first and .eh_frame_hdr behind it. perf puts the pair at
 *    the next multiple of 8 behind the code, and their addresses are relative
 *    to that. libunwind reads them only where the mapped size holds them;
 *  - there is no padding behind the code, which perf finds from the end of its
 *    record;
 *  - a record that says "closed" hides all that follows: it is never written.
 */
#include "perfmap/jitdump.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "perfmap/own_file.h"

#define JITDUMP_MAGIC   0x4a695444
#define JITDUMP_VERSION 1

#if defined(__x86_64__)
#define MACHINE             EM_X86_64
#define DWARF_STACK_POINTER 7
#define DWARF_RETURN        16
#elif defined(__aarch64__)
#define MACHINE             EM_AARCH64
#define DWARF_STACK_POINTER 31
#define DWARF_RETURN        30
#endif

struct file_header {
	uint32_t magic;
	uint32_t version;
	uint32_t total_bytes;
	uint32_t machine;
	uint32_t padding;
	uint32_t pid;
	uint64_t time_ns;
	uint64_t flags;
};

_Static_assert(sizeof(struct file_header) == 40, "perf accepts no other size");

enum record_id {
	RECORD_CODE_LOAD = 0,
	RECORD_DEBUG_INFO = 2,
	RECORD_UNWINDING_INFO = 4,
};

struct record_prefix {
	uint32_t id;
	uint32_t total_bytes;
	uint64_t time_ns;
};

struct code_load {
	struct record_prefix prefix;
	uint32_t pid;
	uint32_t thread_id;
	uint64_t vma;
	uint64_t address;
	uint64_t bytes;
	uint64_t index;
}; /* name with NUL, code */

struct debug_info {
	struct record_prefix prefix;
	uint64_t address;
	uint64_t entry_count;
}; /* entries */

struct debug_entry {
	uint64_t address;
	int32_t line;
	int32_t discriminator;
}; /* file with NUL */

struct unwinding_info {
	struct record_prefix prefix;
	uint64_t bytes;        /* of the data */
	uint64_t header_bytes; /* of .eh_frame_hdr, at its end */
	uint64_t mapped_bytes;
}; /* data, padded to 8 */

#define EH_FRAME_HEADER_BYTES 20
#define UNWINDING_BYTES_MAX   256

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) +
	       (uint64_t)now.tv_nsec;
}

/* ---- opening and closing --------------------------------------------------
 */

static int write_header(const struct jitdump *dump)
{
	struct file_header header = {
		.magic = JITDUMP_MAGIC,
		.version = JITDUMP_VERSION,
		.total_bytes = sizeof(header),
		.machine = MACHINE,
		.pid = (uint32_t)getpid(),
		.time_ns = dump->opened_ns,
	};
	ssize_t written = write(dump->fd, &header, sizeof(header));

	if (written == sizeof(header))
		return 0;
	return written < 0 ? -errno : -ENOSPC;
}

static int map_marker(struct jitdump *dump)
{
	void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE),
	                  PROT_READ | PROT_EXEC, MAP_PRIVATE, dump->fd, 0);

	if (page == MAP_FAILED)
		return -errno;
	dump->marker = page;
	return 0;
}

int jitdump_open(struct jitdump *dump, const char *directory)
{
	int length, error;

	*dump = (struct jitdump){.fd = -1, .opened_ns = monotonic_ns()};
	/* The pid as this process sees it: perf enters its namespaces. */
	length = snprintf(dump->path, sizeof(dump->path), "%s/jit-%ld.dump",
	                  directory, (long)getpid());
	if (length < 0 || (size_t)length >= sizeof(dump->path))
		return -ENAMETOOLONG;
	dump->fd = own_file_create(dump->path);
	if (dump->fd < 0)
		return dump->fd;
	error = write_header(dump);
	if (error == 0)
		error = map_marker(dump);
	dump->written = sizeof(struct file_header);
	if (error == 0)
		return 0;
	unlink(dump->path);
	jitdump_close(dump);
	return error;
}

void jitdump_close(struct jitdump *dump)
{
	if (dump->marker)
		munmap(dump->marker, (size_t)sysconf(_SC_PAGESIZE));
	if (dump->fd >= 0)
		close(dump->fd);
	free(dump->group);
	dump->marker = NULL;
	dump->fd = -1;
	dump->group = NULL;
	dump->group_bytes = 0;
	dump->group_capacity = 0;
}

/* ---- a group of records ---------------------------------------------------
 */

/* Room for bytes more at the end of the group, zeroed; NULL: no memory. */
static void *extend(struct jitdump *dump, size_t bytes)
{
	size_t needed = dump->group_bytes + bytes;
	size_t capacity =
		dump->group_capacity > 0 ? dump->group_capacity : 4096;
	uint8_t *grown, *room;

	while (capacity < needed)
		capacity *= 2;
	if (capacity > dump->group_capacity) {
		grown = realloc(dump->group, capacity);
		if (!grown)
			return NULL;
		dump->group = grown;
		dump->group_capacity = capacity;
	}
	room = dump->group + dump->group_bytes;
	memset(room, 0, bytes);
	dump->group_bytes = needed;
	return room;
}

static bool add(struct jitdump *dump, const void *bytes, size_t count)
{
	void *room = extend(dump, count);

	if (room && count > 0)
		memcpy(room, bytes, count);
	return room != NULL;
}

static bool add_entry(struct jitdump *dump, uint64_t address,
                      const struct jitdump_line *line)
{
	struct debug_entry entry = {
		.address = address,
		.line = (int32_t)line->line,
	};

	return add(dump, &entry, sizeof(entry)) &&
	       add(dump, line->file, strlen(line->file) + 1);
}

static bool add_lines(struct jitdump *dump, const struct jitdump_code *code)
{
	size_t start = dump->group_bytes;
	struct debug_info info = {
		.prefix = {RECORD_DEBUG_INFO, 0, code->time_ns},
		.address = code->address,
		.entry_count = code->line_count + 1,
	};

	if (code->line_count == 0)
		return true;
	if (!add(dump, &info, sizeof(info)))
		return false;
	for (size_t i = 0; i < code->line_count; i++)
		if (!add_entry(dump, code->lines[i].address, &code->lines[i]))
			return false;
	if (!add_entry(dump, code->address + code->bytes,
	               &code->lines[code->line_count - 1]))
		return false;
	info.prefix.total_bytes = (uint32_t)(dump->group_bytes - start);
	memcpy(dump->group + start, &info, sizeof(info));
	return true;
}

/* ---- unwind rules ---------------------------------------------------------
 */

/* .eh_frame under construction. */
struct blob {
	uint8_t bytes[UNWINDING_BYTES_MAX];
	size_t used;
};

static void put_byte(struct blob *blob, unsigned byte)
{
	blob->bytes[blob->used++] = (uint8_t)byte;
}

static void put_word(struct blob *blob, uint32_t word)
{
	memcpy(blob->bytes + blob->used, &word, sizeof(word));
	blob->used += sizeof(word);
}

static void put_number(struct blob *blob, uint32_t number)
{
	while (number >= 0x80) {
		put_byte(blob, (number & 0x7f) | 0x80);
		number >>= 7;
	}
	put_byte(blob, number);
}

/* Length of the entry that starts at start, and padding (DW_CFA_nop). */
static void finish_entry(struct blob *blob, size_t start)
{
	uint32_t length;

	while (blob->used % 4 != 0)
		put_byte(blob, 0);
	length = (uint32_t)(blob->used - start - sizeof(length));
	memcpy(blob->bytes + start, &length, sizeof(length));
}

/* All rules are here, so that the FDE is short: the blob hides what is mapped
 * behind the code. */
static void put_cie(struct blob *blob, const struct jitdump_frame *frame)
{
	put_word(blob, 0); /* length */
	put_word(blob, 0); /* this is a CIE */
	put_byte(blob, 1); /* version */
	put_byte(blob, 'z');
	put_byte(blob, 'R');
	put_byte(blob, 0);
	put_byte(blob, 1);    /* code alignment */
	put_byte(blob, 0x78); /* data alignment: -8 */
	put_byte(blob, DWARF_RETURN);
	put_byte(blob, 1);    /* bytes of augmentation data */
	put_byte(blob, 0x1b); /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */
	put_byte(blob, 0x0c); /* DW_CFA_def_cfa */
	put_byte(blob, DWARF_STACK_POINTER);
	put_number(blob, frame->cfa_bytes);
	put_byte(blob, 0x80 | DWARF_RETURN); /* DW_CFA_offset */
	put_byte(blob, 1);
	for (size_t i = 0; i < frame->saved_count; i++) {
		put_byte(blob, 0x80u | frame->saved[i].dwarf_register);
		put_number(blob, frame->saved[i].cfa_words);
	}
	finish_entry(blob, 0);
}

/* The code starts eh_frame_start bytes before .eh_frame. */
static void put_fde(struct blob *blob, uint32_t code_bytes,
                    uint32_t eh_frame_start)
{
	size_t start = blob->used;

	put_word(blob, 0);                       /* length */
	put_word(blob, (uint32_t)blob->used);    /* back to the CIE */
	put_word(blob, -(uint32_t)(blob->used) - /* start of the code */
	                       eh_frame_start);
	put_word(blob, code_bytes);
	put_byte(blob, 0); /* bytes of augmentation data */
	finish_entry(blob, start);
}

static void put_header(struct blob *blob, uint32_t eh_frame_start,
                       uint32_t fde_start)
{
	uint32_t start = (uint32_t)blob->used;

	put_byte(blob, 1);                       /* version */
	put_byte(blob, 0x1b);                    /* as above */
	put_byte(blob, 0x03);                    /* DW_EH_PE_udata4 */
	put_byte(blob, 0x3b);                    /* datarel, sdata4 */
	put_word(blob, -start - 4);              /* to .eh_frame */
	put_word(blob, 1);                       /* entries in the table */
	put_word(blob, -start - eh_frame_start); /* start of the code */
	put_word(blob, fde_start - start);
}

static bool add_unwinding(struct jitdump *dump, const struct jitdump_code *code)
{
	uint32_t eh_frame_start = (uint32_t)((code->bytes + 7) & ~UINT64_C(7));
	struct blob blob = {.used = 0};
	struct unwinding_info info = {
		.prefix = {RECORD_UNWINDING_INFO, 0, code->time_ns},
		.header_bytes = EH_FRAME_HEADER_BYTES,
	};
	size_t fde_start, padded;

	if (code->frame.cfa_bytes == 0)
		return true;
	put_cie(&blob, &code->frame);
	fde_start = blob.used;
	put_fde(&blob, (uint32_t)code->bytes, eh_frame_start);
	put_header(&blob, eh_frame_start, (uint32_t)fde_start);
	padded = (blob.used + 7) & ~(size_t)7;
	info.bytes = blob.used;
	info.mapped_bytes = code->frame.has_room ? blob.used : 0;
	info.prefix.total_bytes = (uint32_t)(sizeof(info) + padded);
	return add(dump, &info, sizeof(info)) && add(dump, blob.bytes, padded);
}

/* ---- code ----------------------------------------------------------------- */

static bool add_load(struct jitdump *dump, const struct jitdump_code *code)
{
	struct code_load load = {
		.prefix = {RECORD_CODE_LOAD,
	                   (uint32_t)(sizeof(load) + code->name_bytes + 1 +
	                              code->bytes),
	                   code->time_ns},
		.pid = (uint32_t)getpid(),
		.thread_id = code->thread_id,
		.vma = code->address,
		.address = code->address,
		.bytes = code->bytes,
		.index = dump->next_index,
	};

	return add(dump, &load, sizeof(load)) &&
	       add(dump, code->name, code->name_bytes) && add(dump, "", 1);
}

/* Gives up for good, without half a group at the end of the file. */
static int fail(struct jitdump *dump, int error)
{
	(void)!ftruncate(dump->fd, (off_t)dump->written);
	dump->failed = true;
	return -error;
}

/* The group, and the code that ends it if there is any. */
static int write_group(struct jitdump *dump, const void *code, size_t bytes)
{
	struct iovec parts[] = {
		{dump->group, dump->group_bytes},
		{(void *)(uintptr_t)code, bytes},
	};
	struct iovec *part = parts;
	int part_count = 2;

	while (part_count > 0) {
		ssize_t written = writev(dump->fd, part, part_count);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return fail(dump, written < 0 ? errno : ENOSPC);
		while (part_count > 0 && (size_t)written >= part->iov_len) {
			written -= (ssize_t)part->iov_len;
			part++;
			part_count--;
		}
		if (part_count > 0) {
			part->iov_base = (uint8_t *)part->iov_base + written;
			part->iov_len -= (size_t)written;
		}
	}
	dump->written += dump->group_bytes + bytes;
	return 0;
}

int jitdump_append(struct jitdump *dump, const struct jitdump_code *code)
{
	if (dump->fd < 0)
		return -EBADF;
	if (dump->failed)
		return -EIO;
	/* Lengths of records and rules have 32 bits. */
	if (code->bytes == 0 || code->bytes > INT32_MAX / 2 ||
	    code->name_bytes > UINT16_MAX || code->frame.saved_count > 16)
		return -EINVAL;
	dump->group_bytes = 0;
	if (!add_unwinding(dump, code) || !add_lines(dump, code) ||
	    !add_load(dump, code))
		return -ENOMEM;
	dump->next_index++;
	return write_group(dump, code->contents, code->bytes);
}

/* ---- after a fork ---------------------------------------------------------
 */

static bool read_parent(int fd, void *to, size_t bytes, uint64_t offset)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t got = pread(fd, (uint8_t *)to + done, bytes - done,
		                    (off_t)(offset + done));

		if (got > 0)
			done += (size_t)got;
		else if (got == 0 || errno != EINTR)
			return false;
	}
	return true;
}

/* One record of the parent's, whose code the child has from now on. perf
 * forgets what it was told of the child before it was there. */
static int copy_record(struct jitdump *dump, int fd, uint64_t *offset,
                       uint64_t time_ns)
{
	struct record_prefix prefix;
	struct code_load *load;
	uint8_t *record;

	if (!read_parent(fd, &prefix, sizeof(prefix), *offset))
		return -EIO;
	dump->group_bytes = 0;
	record = extend(dump, prefix.total_bytes);
	if (!record)
		return -ENOMEM;
	if (!read_parent(fd, record, prefix.total_bytes, *offset))
		return -EIO;
	load = (struct code_load *)record;
	load->prefix.time_ns = time_ns;
	if (prefix.id == RECORD_CODE_LOAD) {
		load->pid = (uint32_t)getpid();
		load->thread_id = load->pid;
		dump->next_index = load->index + 1;
	}
	*offset += prefix.total_bytes;
	return write_group(dump, "", 0);
}

int jitdump_inherit(struct jitdump *dump, const char *directory)
{
	struct jitdump parent = *dump;
	uint64_t offset = sizeof(struct file_header);
	int error;

	if (parent.fd < 0)
		return -EBADF;
	error = jitdump_open(dump, directory);
	/* What is replayed keeps its order. */
	for (uint64_t time_ns = dump->opened_ns;
	     error == 0 && offset < parent.written; time_ns++)
		error = copy_record(dump, parent.fd, &offset, time_ns);
	dump->failed = parent.failed || error != 0;
	jitdump_close(&parent);
	return error;
}
