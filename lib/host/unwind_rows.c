// SPDX-License-Identifier: MIT
/*
 * Rows of unwind rules; see unwind_rows.h. Many rows share few rules: a rule is
 * looked up by its bytes and stored once.
 */
#include "unwind_rows.h"

#include <stdlib.h>
#include <string.h>

/* The largest objects seen have some 2,000. What is beyond that becomes rule
 * 0, which is none. */
#define RULES_MAX  ((1u << 14) - 1)
#define RULE_SLOTS (1u << 15)

struct row_list {
	struct unwind_rows *rows;
	size_t row_capacity, rule_capacity;
	uint16_t last_rule;
	uint16_t slots[RULE_SLOTS]; /* number of a rule + 1, by its hash */
	bool out_of_memory;
};

/* The array with room for one more; NULL: out of memory, it stays as it was. */
static void *grow(void *array, size_t count, size_t *capacity, size_t first,
                  size_t bytes)
{
	size_t wanted = *capacity ? 2 * *capacity : first;
	void *grown;

	if (count < *capacity)
		return array;
	grown = realloc(array, wanted * bytes);
	if (grown)
		*capacity = wanted;
	return grown;
}

static bool has_room_for_rule(struct row_list *list)
{
	struct unwind_rows *rows = list->rows;
	struct unwind_rule *rules =
		grow(rows->rules, rows->rule_count, &list->rule_capacity, 64,
	             sizeof(*rules));

	if (rules)
		rows->rules = rules;
	return rules;
}

static bool has_room_for_row(struct row_list *list)
{
	struct unwind_rows *rows = list->rows;
	size_t capacity = list->row_capacity;
	uint32_t *ips =
		grow(rows->ips, rows->count, &capacity, 1024, sizeof(*ips));
	uint16_t *numbers;

	if (!ips)
		return false;
	rows->ips = ips;
	numbers = grow(rows->rule_numbers, rows->count, &list->row_capacity,
	               1024, sizeof(*numbers));
	if (numbers)
		rows->rule_numbers = numbers;
	return numbers;
}

static uint32_t hash_rule(const struct unwind_rule *rule)
{
	const uint8_t *bytes = (const uint8_t *)rule;
	uint32_t hash = 2166136261u;
	size_t i;

	for (i = 0; i < sizeof(*rule); i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return hash ^ hash >> 15;
}

/* Number of the rule, which is added if it is new. */
static uint16_t intern_rule(struct row_list *list,
                            const struct unwind_rule *rule)
{
	struct unwind_rows *rows = list->rows;
	uint32_t slot = hash_rule(rule) % RULE_SLOTS;

	if (rows->rule_count &&
	    !memcmp(&rows->rules[list->last_rule], rule, sizeof(*rule)))
		return list->last_rule;
	for (; list->slots[slot]; slot = (slot + 1) % RULE_SLOTS)
		if (!memcmp(&rows->rules[list->slots[slot] - 1], rule,
		            sizeof(*rule)))
			return list->last_rule =
			               (uint16_t)(list->slots[slot] - 1);
	if (rows->rule_count == RULES_MAX)
		return 0;
	if (!has_room_for_rule(list)) {
		list->out_of_memory = true;
		return 0;
	}
	rows->rules[rows->rule_count++] = *rule;
	list->slots[slot] = (uint16_t)rows->rule_count;
	return list->last_rule = (uint16_t)(rows->rule_count - 1);
}

static bool append_ip(struct row_list *list, uint32_t ip, uint16_t rule)
{
	struct unwind_rows *rows = list->rows;

	if (!has_room_for_row(list))
		return false;
	rows->ips[rows->count] = ip;
	rows->rule_numbers[rows->count++] = rule;
	return true;
}

void row_list_append(struct row_list *list, uint32_t ip,
                     const struct unwind_rule *rule)
{
	struct unwind_rows *rows = list->rows;
	size_t last = rows->count - 1;
	struct unwind_rule merged = *rule;

	if (rows->count && rows->ips[last] > ip)
		return;
	if (rows->count && rows->ips[last] == ip) {
		merged.flags |= rows->rules[rows->rule_numbers[last]].flags &
		                UNWIND_FUNCTION;
		rows->rule_numbers[last] = intern_rule(list, &merged);
	} else if (!append_ip(list, ip, intern_rule(list, rule))) {
		list->out_of_memory = true;
	}
}

bool row_list_out_of_memory(const struct row_list *list)
{
	return list->out_of_memory;
}

struct row_list *row_list_open(void)
{
	const struct unwind_rule none = {.flags = UNWIND_NO_RULE};
	struct row_list *list = calloc(1, sizeof(*list));

	if (list)
		list->rows = calloc(1, sizeof(*list->rows));
	if (!list || !list->rows) {
		free(list);
		return NULL;
	}
	intern_rule(list, &none); /* rule 0 */
	return list;
}

static void fit(struct unwind_rows *rows)
{
	void *fitted = realloc(rows->ips, rows->count * sizeof(*rows->ips) + 1);

	if (fitted)
		rows->ips = fitted;
	fitted = realloc(rows->rule_numbers,
	                 rows->count * sizeof(*rows->rule_numbers) + 1);
	if (fitted)
		rows->rule_numbers = fitted;
	fitted = realloc(rows->rules,
	                 rows->rule_count * sizeof(*rows->rules) + 1);
	if (fitted)
		rows->rules = fitted;
}

void unwind_rows_free(struct unwind_rows *rows)
{
	if (!rows)
		return;
	free(rows->ips);
	free(rows->rule_numbers);
	free(rows->rules);
	free(rows);
}

struct unwind_rows *row_list_close(struct row_list *list, bool *out_of_memory)
{
	struct unwind_rows *rows = list ? list->rows : NULL;

	*out_of_memory = !list || list->out_of_memory;
	free(list);
	if (*out_of_memory || !rows->count) {
		unwind_rows_free(rows);
		return NULL;
	}
	fit(rows);
	return rows;
}
