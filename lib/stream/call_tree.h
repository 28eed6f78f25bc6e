// SPDX-License-Identifier: MIT
/*
 * Call tree of a dump: gives every (parent, frame) a node number, so that a
 * stack seen before costs the stream one number. Bounded: when the tree is
 * full it is emptied, and the stream says so (ITEM_RESET_NODES).
 *
 * Runs on the writer thread. All memory is taken by call_tree_open().
 */
#ifndef STREAM_CALL_TREE_H
#define STREAM_CALL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sysprof_write.h"

#define CALL_TREE_NODES_DEFAULT (1u << 18)

struct call_tree {
	struct call_tree_slot *slots; /* open addressing, call_tree.c */
	size_t slot_count;            /* power of two, > node_limit */
	uint32_t node_limit;
	uint32_t node_count; /* numbers given since the last reset */
};

/* node_limit from 1 to 2^26. Memory is mapped and touched only as it is used.
 * False: out of memory, or a limit that is not accepted. */
bool call_tree_open(struct call_tree *tree, uint32_t node_limit);
void call_tree_close(struct call_tree *tree);

/* Of memory, at most: nodes lie anywhere. */
size_t call_tree_held_bytes(const struct call_tree *tree);

/* The number of the node (from 1), 0 if it is new and the tree is full.
 * *is_new: it got the next number just now and is to be written. */
uint32_t call_tree_find(struct call_tree *tree, uint32_t parent,
                        const struct stack_node *node, bool *is_new);

/* Forgets all nodes; numbers start again at 1. */
void call_tree_reset(struct call_tree *tree);

/*
 * The leaf node of a stack that is given frame by frame, root first:
 *
 *   call_tree_make_room(tree, encoder, frame_count);
 *   for (i = frame_count; i-- > 0;)
 *           node = sysprof_write_frame(encoder, tree, node, &frame[i]);
 *
 * call_tree_make_room() resets tree and stream if fewer than frame_count new
 * nodes fit, so node numbers stay good through one stack. False if the tree
 * can never hold that many: cut the stack.
 */
bool call_tree_make_room(struct call_tree *tree,
                         struct sysprof_encoder *encoder, size_t frame_count);
uint32_t sysprof_write_frame(struct sysprof_encoder *encoder,
                             struct call_tree *tree, uint32_t parent,
                             const struct stack_node *frame);

#endif
