// SPDX-License-Identifier: MIT
/* Strings, each kept once; see name_table.h. */
#include "name_table.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

#define NO_ENTRY UINT32_MAX

struct name_entry {
	char *text;
	uint32_t same_hash; /* next entry with the same hash, or NO_ENTRY */
};

void name_table_free(struct name_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free(table->entries[i].text);
	free(table->entries);
	id_map_free(&table->by_hash);
	*table = (struct name_table){0};
}

/* FNV-1a. */
static uint64_t hash_bytes(const char *bytes, size_t count)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < count; i++)
		hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
	return hash;
}

static bool entry_is(const struct name_entry *entry, const char *bytes,
                     size_t count)
{
	return strncmp(entry->text, bytes, count) == 0 &&
	       entry->text[count] == '\0';
}

uint32_t name_table_add(struct name_table *table, const char *bytes,
                        size_t count)
{
	uint32_t added = (uint32_t)table->count;
	bool is_new;

	count = strnlen(bytes, count);

	uint32_t *first = id_map_add(&table->by_hash, hash_bytes(bytes, count),
	                             0, added, &is_new);
	for (uint32_t i = is_new ? NO_ENTRY : *first; i != NO_ENTRY;
	     i = table->entries[i].same_hash)
		if (entry_is(&table->entries[i], bytes, count))
			return i;

	table->entries = memory_grow(table->entries, &table->capacity,
	                             ++table->count, sizeof(*table->entries));
	table->entries[added] = (struct name_entry){
		.text = memory_copy(bytes, count),
		.same_hash = is_new ? NO_ENTRY : *first,
	};
	*first = added;
	return added;
}

const char *name_table_get(const struct name_table *table, uint32_t number)
{
	return table->entries[number].text;
}
