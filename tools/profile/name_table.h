// SPDX-License-Identifier: MIT
/*
 * Strings, each kept once: names of frames, files and dumps. Equal strings have
 * equal numbers and equal pointers, which stay good until the table is freed.
 */
#ifndef PROFILE_NAME_TABLE_H
#define PROFILE_NAME_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "id_map.h"

struct name_table {
	struct name_entry *entries; /* name_table.c */
	size_t count;
	size_t capacity;
	struct id_map by_hash; /* hash -> first entry of that hash */
};

/* Zero a struct name_table before its first use. */
void name_table_free(struct name_table *table);

/* Number of the string, which is added if it is new. It ends at its first
 * NUL. */
uint32_t name_table_add(struct name_table *table, const char *bytes,
                        size_t count);
const char *name_table_get(const struct name_table *table, uint32_t number);

#endif
