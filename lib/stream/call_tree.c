// SPDX-License-Identifier: MIT
/*
 * Call tree of a dump; see call_tree.h. Runs on the writer thread; takes
 * memory only in call_tree_open().
 */
#include "call_tree.h"

#include <sys/mman.h>

#define NODE_LIMIT_MAX (1u << 26)
#define PAGE_BYTES     4096

struct call_tree_slot {
	uint64_t value;
	uint32_t parent;
	uint32_t line;
	uint32_t number; /* of the node, 0: the slot is free */
	uint8_t kind;
	uint8_t flags;
};

bool call_tree_open(struct call_tree *tree, uint32_t node_limit)
{
	size_t slot_count = 2;

	*tree = (struct call_tree){0};
	if (node_limit < 1 || node_limit > NODE_LIMIT_MAX)
		return false;
	while (slot_count < 2 * (size_t)node_limit) /* at most half full */
		slot_count *= 2;

	void *slots = mmap(NULL, slot_count * sizeof(struct call_tree_slot),
	                   PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (slots == MAP_FAILED)
		return false;
	tree->slots = slots;
	tree->slot_count = slot_count;
	tree->node_limit = node_limit;
	return true;
}

void call_tree_close(struct call_tree *tree)
{
	if (tree->slots != NULL)
		munmap(tree->slots, tree->slot_count * sizeof(*tree->slots));
	*tree = (struct call_tree){0};
}

size_t call_tree_held_bytes(const struct call_tree *tree)
{
	size_t all = tree->slot_count * sizeof(*tree->slots);
	size_t touched = (size_t)tree->node_count * PAGE_BYTES;

	return touched < all ? touched : all;
}

/* Private anonymous pages read as zero again, and their memory is free. */
void call_tree_reset(struct call_tree *tree)
{
	madvise(tree->slots, tree->slot_count * sizeof(*tree->slots),
	        MADV_DONTNEED);
	tree->node_count = 0;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ (hash >> 29);
}

static size_t first_slot(const struct call_tree *tree, uint32_t parent,
                         const struct stack_node *node)
{
	uint64_t hash = mix(parent, node->value);

	hash = mix(hash, (uint64_t)node->line << 16 |
	                         (uint64_t)node->kind << 8 | node->flags);
	return (size_t)hash & (tree->slot_count - 1);
}

static bool slot_holds(const struct call_tree_slot *slot, uint32_t parent,
                       const struct stack_node *node)
{
	return slot->parent == parent && slot->value == node->value &&
	       slot->line == node->line && slot->kind == node->kind &&
	       slot->flags == node->flags;
}

uint32_t call_tree_find(struct call_tree *tree, uint32_t parent,
                        const struct stack_node *node, bool *is_new)
{
	size_t i = first_slot(tree, parent, node);

	*is_new = false;
	while (tree->slots[i].number != 0) {
		if (slot_holds(&tree->slots[i], parent, node))
			return tree->slots[i].number;
		i = (i + 1) & (tree->slot_count - 1);
	}
	if (tree->node_count == tree->node_limit)
		return 0;
	*is_new = true;
	tree->slots[i] = (struct call_tree_slot){
		.value = node->value,
		.parent = parent,
		.line = node->line,
		.number = ++tree->node_count,
		.kind = node->kind,
		.flags = node->flags,
	};
	return tree->node_count;
}

bool call_tree_make_room(struct call_tree *tree,
                         struct sysprof_encoder *encoder, size_t frame_count)
{
	if (frame_count > tree->node_limit)
		return false;
	if (tree->node_limit - tree->node_count >= frame_count)
		return true;
	call_tree_reset(tree);
	sysprof_write_reset_nodes(encoder);
	return true;
}

uint32_t sysprof_write_frame(struct sysprof_encoder *encoder,
                             struct call_tree *tree, uint32_t parent,
                             const struct stack_node *frame)
{
	bool is_new;
	uint32_t number = call_tree_find(tree, parent, frame, &is_new);

	if (is_new)
		sysprof_write_node(encoder, parent, frame);
	return number;
}
