// SPDX-License-Identifier: MIT
/*
 * ELF images in this process's memory. Runs on any thread; never in the signal
 * handler.
 */
#include "elf_image.h"

#include <elf.h>
#include <string.h>

#include "own_memory.h"

#define PAGE_BYTES      4096
#define SEGMENTS_MAX    128
#define NOTES_BYTES_MAX 4096

/* Do the bytes at address belong to the code of the same file? An anonymous
 * mapping is taken, too: some programs move their code to huge pages. */
static bool is_mapped_code(const struct mappings *mappings,
                           const struct mapping *first, uint64_t address)
{
	const struct mapping *code = mappings_find(mappings, address);

	return code && code->is_executable &&
	       (!code->inode ||
	        (code->inode == first->inode && code->device == first->device));
}

static uint64_t hash_page(const uint8_t *page)
{
	uint64_t hash = 0, word;
	size_t i;

	for (i = 0; i < PAGE_BYTES; i += sizeof(word)) {
		memcpy(&word, page + i, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash;
}

static bool is_supported(const Elf64_Ehdr *header)
{
	return !memcmp(header->e_ident, ELFMAG, SELFMAG) &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 &&
	       (header->e_type == ET_DYN || header->e_type == ET_EXEC) &&
	       header->e_phentsize == sizeof(Elf64_Phdr) &&
	       header->e_phnum <= SEGMENTS_MAX;
}

static void add_notes(struct elf_image *image, uint64_t start, uint64_t bytes)
{
	size_t i;

	for (i = 0; i < NOTE_SEGMENTS_MAX; i++) {
		if (image->notes[i].bytes)
			continue;
		image->notes[i] = (struct elf_notes){start, bytes};
		return;
	}
}

static void add_segment(struct elf_image *image, const Elf64_Phdr *segment)
{
	uint64_t start = image->bias + segment->p_vaddr;

	if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X)) {
		if (!image->end || start < image->start)
			image->start = start;
		if (start + segment->p_memsz > image->end)
			image->end = start + segment->p_memsz;
	} else if (segment->p_type == PT_GNU_EH_FRAME) {
		image->frame_header = start;
		image->frame_header_bytes = segment->p_memsz;
	} else if (segment->p_type == PT_NOTE) {
		add_notes(image, start, segment->p_memsz);
	}
}

static bool read_segments(struct elf_image *image, const Elf64_Ehdr *header)
{
	Elf64_Phdr segments[SEGMENTS_MAX];
	int i;

	if (!own_memory_read(image->header + header->e_phoff, segments,
	                     header->e_phnum * sizeof(segments[0])))
		return false;
	for (i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD && segments[i].p_offset == 0)
			image->bias = image->header - segments[i].p_vaddr;
	for (i = 0; i < header->e_phnum; i++)
		add_segment(image, &segments[i]);
	return image->start < image->end;
}

bool elf_image_read(const struct mappings *mappings,
                    const struct mapping *first, struct elf_image *image)
{
	uint8_t page[PAGE_BYTES] __attribute__((aligned(8)));
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)page;

	*image = (struct elf_image){.header = first->start};
	if (first->file_offset || !mapping_is_object(first) ||
	    !own_memory_read(first->start, page, SELFMAG) ||
	    memcmp(page, ELFMAG, SELFMAG) != 0 ||
	    !own_memory_read(first->start, page, sizeof(page)) ||
	    !is_supported(header) || !read_segments(image, header))
		return false;
	image->contents = hash_page(page);
	return is_mapped_code(mappings, first, image->start);
}

static uint32_t padded(uint32_t bytes)
{
	return (bytes + 3) & ~UINT32_C(3);
}

static size_t find_build_id(const struct elf_notes *segment,
                            uint8_t build_id[BUILD_ID_BYTES_MAX])
{
	uint8_t notes[NOTES_BYTES_MAX] __attribute__((aligned(8)));
	size_t left = segment->bytes, bytes;
	const uint8_t *at = notes;

	if (left > sizeof(notes))
		left = sizeof(notes);
	if (!own_memory_read(segment->start, notes, left))
		return 0;
	for (; left >= sizeof(Elf64_Nhdr); at += bytes, left -= bytes) {
		const Elf64_Nhdr *note = (const Elf64_Nhdr *)at;
		const uint8_t *name = at + sizeof(*note);

		if (note->n_namesz > left || note->n_descsz > left)
			return 0;
		bytes = sizeof(*note) + padded(note->n_namesz) +
		        padded(note->n_descsz);
		if (bytes > left)
			return 0;
		if (note->n_type != NT_GNU_BUILD_ID || note->n_namesz != 4 ||
		    memcmp(name, "GNU", 4) != 0 ||
		    note->n_descsz > BUILD_ID_BYTES_MAX)
			continue;
		memcpy(build_id, name + 4, note->n_descsz);
		return note->n_descsz;
	}
	return 0;
}

size_t elf_image_build_id(const struct elf_image *image,
                          uint8_t build_id[BUILD_ID_BYTES_MAX])
{
	size_t i, bytes = 0;

	for (i = 0; i < NOTE_SEGMENTS_MAX && !bytes; i++)
		if (image->notes[i].bytes)
			bytes = find_build_id(&image->notes[i], build_id);
	return bytes;
}

size_t elf_image_build_id_at(uint64_t address,
                             uint8_t build_id[BUILD_ID_BYTES_MAX])
{
	struct mappings mappings;
	struct elf_image image;
	size_t i, bytes = 0;

	if (mappings_read(&mappings))
		return 0;
	for (i = 0; i < mappings.count; i++)
		if (mappings.list[i].start <= address &&
		    elf_image_read(&mappings, &mappings.list[i], &image) &&
		    address >= image.start && address < image.end)
			bytes = elf_image_build_id(&image, build_id);
	mappings_free(&mappings);
	return bytes;
}
