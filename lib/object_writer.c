// SPDX-License-Identifier: MIT
/*
 * Object writer: the mapped objects in the stream. Runs on the writer thread;
 * never asks the dynamic loader.
 */
#include "object_writer.h"

#include "host/elf_image.h"

static bool is_same(const struct mapping *a, const struct mapping *b)
{
	return a->start == b->start && a->end == b->end &&
	       a->file_offset == b->file_offset && a->device == b->device &&
	       a->inode == b->inode;
}

static bool is_written(const struct object_writer *writer,
                       const struct mapping *mapping)
{
	const struct mapping *known =
		mappings_find(&writer->written, mapping->start);

	return known && is_same(known, mapping);
}

static void write_mapping(struct sysprof_encoder *encoder,
                          const struct mappings *mappings,
                          const struct mapping *mapping,
                          const struct mapping *first)
{
	uint8_t build_id[BUILD_ID_BYTES_MAX];
	struct elf_image image;
	struct mapping_facts facts = {
		.start = mapping->start,
		.bytes = mapping->end - mapping->start,
		.file_offset = mapping->file_offset,
		.build_id = build_id,
		.path = mapping->path,
	};

	/* Of what has no header here neither is known. */
	if (!first || !elf_image_read(mappings, first, &image))
		return;
	facts.file_address = mapping->start - image.bias;
	facts.build_id_bytes = elf_image_build_id(&image, build_id);
	sysprof_write_mapping(encoder, &facts);
}

static bool is_of_file(const struct mapping *first,
                       const struct mapping *mapping)
{
	return first && first->device == mapping->device &&
	       first->inode == mapping->inode;
}

void object_writer_update(struct object_writer *writer,
                          struct sysprof_encoder *encoder)
{
	const struct mapping *first = NULL; /* the last first page seen */
	struct mappings mappings;
	size_t i;

	if (mappings_read(&mappings))
		return;
	if (mappings.fingerprint == writer->written.fingerprint) {
		mappings_free(&mappings);
		return;
	}
	for (i = 0; i < mappings.count; i++) {
		const struct mapping *mapping = &mappings.list[i];

		if (!mapping_is_object(mapping))
			continue;
		if (mapping->file_offset == 0)
			first = mapping;
		if (mapping->is_executable && !is_written(writer, mapping))
			write_mapping(encoder, &mappings, mapping,
			              is_of_file(first, mapping) ? first
			                                         : NULL);
	}
	mappings_free(&writer->written);
	writer->written = mappings;
}

void object_writer_close(struct object_writer *writer)
{
	mappings_free(&writer->written);
}
