// SPDX-License-Identifier: MIT
/* Sums of a memory profile; see allocations.h. */
#include "allocations.h"

#include <math.h>
#include <stdlib.h>

#include "profile/memory.h"

void allocations_free(struct allocations *allocations)
{
	free(allocations->locations);
	free(allocations->overrides);
	free(allocations->weights);
	blocks_free(&allocations->live);
	id_map_free(&allocations->locations_by_key);
	id_map_free(&allocations->overrides_by_key);
	*allocations = (struct allocations){0};
}

uint32_t allocations_location(struct allocations *allocations, uint32_t frame,
                              uint64_t key, uint32_t trace_number)
{
	bool is_new;
	uint32_t index;

	if (allocations->location_count == 0)
		allocations->location_count = 1;
	index = *id_map_add(&allocations->locations_by_key,
	                    (uint64_t)trace_number << 32 | frame, key,
	                    (uint32_t)allocations->location_count, &is_new);
	if (!is_new)
		return index;
	allocations->locations = memory_grow(
		allocations->locations, &allocations->location_capacity,
		++allocations->location_count, sizeof(*allocations->locations));
	allocations->locations[index] = (struct allocation_location){
		.frame = frame,
		.trace_number = trace_number,
	};
	return index;
}

/* How many blocks of this size a sampled one stands for: the chance that none
 * of its bytes is sampled is exp(-bytes / distance). */
static double block_weight(const struct allocations *allocations,
                           uint64_t bytes)
{
	if (allocations->sample_bytes == 0 || bytes == 0)
		return 1;
	return -1 / expm1(-(double)bytes / (double)allocations->sample_bytes);
}

static struct allocation_weights *weights_of(struct allocations *allocations,
                                             uint32_t node)
{
	allocations->weights =
		memory_grow(allocations->weights, &allocations->weight_capacity,
	                    (size_t)node + 1, sizeof(*allocations->weights));
	while (allocations->weight_count <= node)
		allocations->weights[allocations->weight_count++] =
			(struct allocation_weights){0};
	return &allocations->weights[node];
}

static struct allocation_override *override_of(struct allocations *allocations,
                                               uint32_t location,
                                               uint32_t owner,
                                               enum allocation_section section)
{
	uint32_t *recent =
		&allocations->recent_overrides[(location * 31 + owner * 3 +
	                                        section) %
	                                       ALLOCATION_RECENT_OVERRIDES];
	bool is_new;
	uint32_t index;

	if (*recent != 0) {
		struct allocation_override *override =
			&allocations->overrides[*recent - 1];

		if (override->location == location &&
		    override->owner == owner && override->section == section)
			return override;
	}
	index = *id_map_add(&allocations->overrides_by_key,
	                    (uint64_t)location << 32 | owner, section,
	                    (uint32_t)allocations->override_count, &is_new);
	*recent = index + 1;
	if (is_new) {
		allocations->overrides = memory_grow(
			allocations->overrides, &allocations->override_capacity,
			++allocations->override_count,
			sizeof(*allocations->overrides));
		allocations->overrides[index] = (struct allocation_override){
			.location = location,
			.owner = owner,
			.section = section,
		};
	}
	return &allocations->overrides[index];
}

/* ---- one event --------------------------------------------------------------- */

/* A block that is no longer what it was. */
static void end_block(struct allocations *allocations,
                      const struct block *block)
{
	double weight = block_weight(allocations, block->bytes);
	double bytes = (double)block->bytes * weight;
	struct allocation_balance *balance =
		&allocations->locations[block->location].balance;

	balance->held_bytes -= bytes;
	balance->free_count += weight;
	weights_of(allocations, block->node)->held_bytes -= bytes;
}

static void begin_block(struct allocations *allocations,
                        const struct block *block)
{
	double weight = block_weight(allocations, block->bytes);
	double bytes = (double)block->bytes * weight;
	struct allocation_balance *balance =
		&allocations->locations[block->location].balance;
	struct block lost;

	/* Whoever had this address before is gone, though nobody told. */
	if (blocks_take(&allocations->live, block->address, &lost))
		end_block(allocations, &lost);
	balance->held_bytes += bytes;
	balance->alloc_count += weight;
	weights_of(allocations, block->node)->held_bytes += bytes;
	blocks_add(&allocations->live, block);
}

static enum allocation_section section_of(const struct dump_event *event,
                                          uint64_t flags)
{
	if ((flags & EVENT_FLAG_RESIZE) != 0 || event->event == MEMPROF_REALLOC)
		return SECTION_REALLOC;
	return event->event == MEMPROF_ALLOC ? SECTION_ALLOC : SECTION_FREE;
}

static void count_totals(struct allocations *allocations,
                         const struct dump_event *event, uint32_t location,
                         enum allocation_section section)
{
	struct allocation_totals *totals =
		&allocations->locations[location].events[section];
	double new_weight = block_weight(allocations, event->new_bytes);
	double old_weight = block_weight(allocations, event->old_bytes);

	/* Of a sampled resize the new side tells how many there were. */
	if (event->event != MEMPROF_FREE)
		totals->event_count += new_weight;
	else if (section == SECTION_FREE)
		totals->event_count += old_weight;
	if (event->event != MEMPROF_FREE)
		totals->alloc_bytes += (double)event->new_bytes * new_weight;
	if (event->event != MEMPROF_ALLOC)
		totals->free_bytes += (double)event->old_bytes * old_weight;
}

/* False: the block is not one of the dump. */
static bool take_old_block(struct allocations *allocations,
                           const struct dump_event *event, uint32_t location,
                           enum allocation_section section, struct block *block)
{
	struct allocation_override *override;
	double weight;

	if (event->event == MEMPROF_ALLOC)
		return false;
	if (!blocks_take(&allocations->live, event->old_address, block)) {
		allocations->before_count++;
		allocations->before_bytes += (double)event->old_bytes;
		return false;
	}
	weight = block_weight(allocations, block->bytes);
	override = override_of(allocations, location, block->location, section);
	override->event_count += weight;
	override->free_bytes += (double)block->bytes * weight;
	override->alloc_bytes += (double)event->new_bytes *
	                         block_weight(allocations, event->new_bytes);
	end_block(allocations, block);
	return true;
}

void allocations_count(struct allocations *allocations,
                       const struct dump_event *event, uint32_t location,
                       uint32_t node, uint64_t flags)
{
	enum allocation_section section = section_of(event, flags);
	struct block old = {0};
	struct block block = {
		.address = event->new_address,
		.bytes = event->new_bytes,
		.location = location,
		.node = node,
	};
	struct allocation_weights *weights;

	allocations->event_count++;
	count_totals(allocations, event, location, section);
	if (take_old_block(allocations, event, location, section, &old) &&
	    !allocations->resize_moves_owner) {
		block.location = old.location;
		block.node = old.node;
	}
	if (event->event == MEMPROF_FREE)
		return;
	weights = weights_of(allocations, node);
	weights->alloc_bytes +=
		(double)block.bytes * block_weight(allocations, block.bytes);
	weights->alloc_count += block_weight(allocations, block.bytes);
	begin_block(allocations, &block);
}
