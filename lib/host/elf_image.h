// SPDX-License-Identifier: MIT
/*
 * ELF images in this process's memory: where an object's code, its unwind
 * information and its build id are, by the header that is mapped with it.
 * Reads copies only, so an object may vanish meanwhile. Not for the signal
 * handler.
 */
#ifndef HOST_ELF_IMAGE_H
#define HOST_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mappings.h"

#define BUILD_ID_BYTES_MAX 20
#define NOTE_SEGMENTS_MAX  4

struct elf_image {
	uint64_t header;       /* address of the ELF header */
	uint64_t bias;         /* address in memory - address in the file */
	uint64_t start, end;   /* from the first to the last executable byte */
	uint64_t frame_header; /* .eh_frame_hdr; 0: none */
	uint64_t frame_header_bytes;
	struct elf_notes {
		uint64_t start, bytes;
	} notes[NOTE_SEGMENTS_MAX]; /* bytes 0: none */
	uint64_t contents; /* hash of the header's page: tells a file from
	                    * another that is mapped at the same place later */
};

/* Reads the image whose first page is this mapping. False if that is no ELF
 * object, or one whose code is not mapped with it: a file that is just read. */
bool elf_image_read(const struct mappings *mappings,
                    const struct mapping *first, struct elf_image *image);

/* Its length in bytes, 0 if there is none. */
size_t elf_image_build_id(const struct elf_image *image,
                          uint8_t build_id[BUILD_ID_BYTES_MAX]);

/* The same of whatever object holds the address. */
size_t elf_image_build_id_at(uint64_t address,
                             uint8_t build_id[BUILD_ID_BYTES_MAX]);

#endif
