// SPDX-License-Identifier: MIT
/*
 * Labels: setting them and taking them away. Ordinary code on any thread; the
 * lock is held for a few loads and stores only.
 */
#include "labels_state.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "lmisclib.h"

static pthread_mutex_t labels_lock = PTHREAD_MUTEX_INITIALIZER;

/* The table, mapped when it is first needed; NULL: out of memory. */
static struct labels *table(void)
{
	struct labels *labels = atomic_load(&labels_published);

	if (labels)
		return labels;
	/* Touched only as far as it is used. */
	labels = mmap(NULL, sizeof(*labels), PROT_READ | PROT_WRITE,
	              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (labels == MAP_FAILED)
		return NULL;
	atomic_store(&labels_published, labels);
	return labels;
}

static uint32_t hash_text(const char *text, size_t bytes)
{
	uint32_t hash = 2166136261u;

	while (bytes-- > 0)
		hash = (hash ^ (uint8_t)*text++) * 16777619u;
	return hash;
}

/* Number of the label with this text, 0 if there are too many. */
static uint32_t intern(struct labels *labels, const char *text, size_t bytes)
{
	uint32_t slot = hash_text(text, bytes) % LABEL_TEXTS_MAX;
	uint32_t label;

	for (; (label = labels->by_text[slot]) != 0;
	     slot = (slot + 1) % LABEL_TEXTS_MAX)
		if (strlen(labels->texts[label]) == bytes &&
		    !memcmp(labels->texts[label], text, bytes))
			return label;
	if (labels->text_count >= LABEL_TEXTS_MAX / 4 * 3)
		return 0;
	label = ++labels->text_count;
	memcpy(labels->texts[label], text, bytes);
	labels->by_text[slot] = label;
	return label;
}

/* The entry of the coroutine, or the one it can have; NULL: all are taken. */
static struct labelled *find_entry(struct labels *labels, uint64_t coroutine)
{
	uint32_t slot = labels_slot(coroutine);
	struct labelled *abandoned = NULL;
	uint64_t found;

	for (;; slot = (slot + 1) % LABELLED_MAX) {
		struct labelled *entry = &labels->coroutines[slot];

		found = atomic_load(&entry->coroutine);
		if (found == coroutine)
			return entry;
		if (found && !abandoned && !atomic_load(&entry->label))
			abandoned = entry;
		if (found)
			continue;
		if (abandoned)
			return abandoned;
		if (labels->used_count >= LABELLED_MAX / 4 * 3)
			return NULL;
		labels->used_count++;
		return entry;
	}
}

static int set_locked(uint64_t coroutine, uint64_t witness, const char *text,
                      size_t bytes, uint64_t *serial, struct error *error)
{
	struct labels *labels = table();
	struct labelled *entry;
	uint32_t label;

	if (!labels)
		return error_set(error, PROFILE_ERRMEM, ENOMEM,
		                 "out of memory for labels");
	label = intern(labels, text, bytes);
	if (!label)
		return error_set(error, PROFILE_ERRUSE, ENOSPC,
		                 "more than %u different labels: leave out "
		                 "what differs from request to request",
		                 LABEL_TEXTS_MAX / 4 * 3);
	entry = find_entry(labels, coroutine);
	if (!entry)
		return error_set(error, PROFILE_ERRUSE, ENOSPC,
		                 "more than %u coroutines have a label: take "
		                 "them away with label(nil)",
		                 LABELLED_MAX / 4 * 3);
	entry->serial = *serial = ++labels->last_serial;
	/* A handler that finds an entry between its stores misses a label, or
	 * sees none yet: never another coroutine's. */
	if (atomic_load(&entry->coroutine) != coroutine ||
	    atomic_load(&entry->witness) != witness) {
		atomic_store(&entry->label, 0);
		atomic_store(&entry->coroutine, coroutine);
		atomic_store(&entry->witness, witness);
	}
	atomic_store(&entry->label, label);
	return 0;
}

int labels_set(uint64_t coroutine, uint64_t witness, const char *text,
               size_t bytes, uint64_t *serial, struct error *error)
{
	int result;

	if (bytes > LABEL_BYTES_MAX)
		bytes = LABEL_BYTES_MAX;
	bytes = strnlen(text, bytes);
	pthread_mutex_lock(&labels_lock);
	result = set_locked(coroutine, witness, text, bytes, serial, error);
	pthread_mutex_unlock(&labels_lock);
	return result;
}

/* Makes entries without a label free again, from this one back, so that
 * coroutines that come and go do not use the table up: searches need them only
 * for what lies behind. */
static void free_entries(struct labels *labels, uint32_t slot)
{
	uint32_t next = (slot + 1) % LABELLED_MAX;

	if (atomic_load(&labels->coroutines[next].coroutine))
		return;
	for (;; slot = (slot + LABELLED_MAX - 1) % LABELLED_MAX) {
		struct labelled *entry = &labels->coroutines[slot];

		if (!atomic_load(&entry->coroutine) ||
		    atomic_load(&entry->label))
			return;
		atomic_store(&entry->coroutine, 0);
		labels->used_count--;
	}
}

void labels_clear(uint64_t coroutine, uint64_t serial)
{
	struct labels *labels = atomic_load(&labels_published);
	struct labelled *entry;
	uint32_t slot = labels_slot(coroutine);
	uint64_t found;

	if (!labels)
		return;
	pthread_mutex_lock(&labels_lock);
	for (;; slot = (slot + 1) % LABELLED_MAX) {
		entry = &labels->coroutines[slot];
		found = atomic_load(&entry->coroutine);
		if (found == coroutine || !found)
			break;
	}
	if (found && (!serial || entry->serial == serial)) {
		atomic_store(&entry->label, 0);
		free_entries(labels, slot);
	}
	pthread_mutex_unlock(&labels_lock);
}

const char *labels_text(uint32_t label)
{
	struct labels *labels = atomic_load(&labels_published);

	/* [0] is empty; a text is whole before its number is known. */
	return labels && label < LABEL_TEXTS_MAX ? labels->texts[label] : "";
}
