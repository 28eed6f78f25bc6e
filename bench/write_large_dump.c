// SPDX-License-Identifier: MIT
/*
 * Writes a large dump to standard output, for bench/parse-speed.sh and tests:
 *
 *   write_large_dump MEGABYTES [STACKS]
 *
 * As many distinct stacks as asked for (10000), of 6 native frames and 4 to 19
 * frames of 500 Lua functions in 40 files, sampled again and again until the
 * size is reached. The same arguments give the same bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stream/call_tree.h"

#define FUNCTION_COUNT 500
#define NATIVE_COUNT   200
#define NATIVE_FRAMES  6
#define LUA_FRAMES_MAX 19
#define THREAD_COUNT   4
#define NATIVE_BASE    0x555555554000u
#define PROTO_BASE     0x7f3210000000u

/* One stack; frames root first. */
struct stack {
	size_t native_count; /* below the Lua frames */
	size_t lua_count;
	uint64_t native[NATIVE_FRAMES];
	uint32_t function[LUA_FRAMES_MAX]; /* from 0 */
	uint32_t line[LUA_FRAMES_MAX];
};

struct large {
	struct sysprof_encoder encoder;
	struct call_tree tree;
	uint64_t written_bytes;
	uint64_t random;
	uint64_t time_ns;
	uint64_t sample_count;
};

static size_t flush(const void **data, size_t bytes, void *context)
{
	struct large *large = context;

	large->written_bytes += bytes;
	return fwrite(*data, 1, bytes, stdout);
}

static uint32_t next_random(struct large *large, uint32_t below)
{
	large->random = large->random * 6364136223846793005u + 1;
	return (uint32_t)((large->random >> 33) % below);
}

static void write_symbols(struct large *large)
{
	char name[64];

	for (uint32_t i = 0; i < NATIVE_COUNT; i++) {
		snprintf(name, sizeof(name), "native_function_%u", i);
		sysprof_write_c_symbol(&large->encoder, NATIVE_BASE + i * 4096,
		                       name);
	}
	for (uint32_t i = 0; i < FUNCTION_COUNT; i++) {
		char chunk[64];

		snprintf(chunk, sizeof(chunk), "@app/module_%02u.lua", i % 40);
		snprintf(name, sizeof(name), "handle_%u", i);
		sysprof_write_proto(&large->encoder, PROTO_BASE + i * 256,
		                    chunk, strlen(chunk), i * 10);
		sysprof_write_lua_symbol(
			&large->encoder,
			&(struct lua_symbol_facts){
				.id = i + 1,
				.prototype = PROTO_BASE + i * 256,
				.first_line = i * 10,
				.line_count = 9,
				.chunk = chunk,
				.chunk_bytes = strlen(chunk),
				.function = name,
			});
	}
}

/* Functions near the root are few, as in programs. */
static void make_stack(struct large *large, struct stack *stack)
{
	stack->native_count = NATIVE_FRAMES;
	for (size_t i = 0; i < NATIVE_FRAMES; i++)
		stack->native[i] =
			NATIVE_BASE +
			(i < 4 ? i : next_random(large, 3) + i) * 4096 + 16;
	stack->lua_count = 4 + next_random(large, LUA_FRAMES_MAX - 3);
	for (uint32_t i = 0; i < stack->lua_count; i++) {
		uint32_t choices = i < 3 ? 2 + i * 2 : i < 8 ? 12 : 40;
		uint32_t function = next_random(large, choices) + i * 20;

		stack->function[i] = function;
		stack->line[i] = function * 10 + 1 + next_random(large, 3);
	}
}

static void write_node(struct large *large, const struct stack *stack,
                       uint32_t *node)
{
	*node = 0;
	call_tree_make_room(&large->tree, &large->encoder,
	                    stack->native_count + stack->lua_count);
	for (size_t i = 0; i < stack->native_count; i++)
		*node = sysprof_write_frame(
			&large->encoder, &large->tree, *node,
			&(struct stack_node){.kind = FRAME_HOST,
		                             .value = stack->native[i]});
	for (size_t i = 0; i < stack->lua_count; i++)
		*node = sysprof_write_frame(
			&large->encoder, &large->tree, *node,
			&(struct stack_node){.kind = FRAME_LUA,
		                             .value = stack->function[i] + 1,
		                             .line = stack->line[i]});
}

static void write_sample(struct large *large, const struct stack *stack)
{
	struct guest_entry guest[LUA_FRAMES_MAX];
	uint64_t host[NATIVE_FRAMES];
	uint32_t node;

	for (size_t i = 0; i < stack->lua_count; i++) {
		uint32_t function = stack->function[stack->lua_count - 1 - i];

		guest[i] = (struct guest_entry){
			.value = PROTO_BASE + function * 256,
			.first_line = function * 10,
			.type = GUEST_LUA,
		};
	}
	for (size_t i = 0; i < stack->native_count; i++)
		host[i] = stack->native[stack->native_count - 1 - i];
	write_node(large, stack, &node);
	large->time_ns += 900000 + next_random(large, 200000);
	sysprof_write_sample_facts(
		&large->encoder,
		&(struct sample_facts){
			.time_ns = large->time_ns,
			.thread_id = 4000 + large->sample_count % THREAD_COUNT,
			.vm_number = 1 + large->sample_count % THREAD_COUNT,
			.coroutine = PROTO_BASE + next_random(large, 8) * 128,
			.leaf_node = node,
		});
	sysprof_write_sample(
		&large->encoder,
		next_random(large, 4) == 0 ? STATE_GC : STATE_LFUNC, guest,
		stack->lua_count, host, stack->native_count);
	large->sample_count++;
}

static void write_dump(struct large *large, uint64_t wanted_bytes,
                       const struct stack *stacks, uint32_t stack_count)
{
	sysprof_write_prologue(&large->encoder);
	sysprof_write_session(
		&large->encoder,
		&(struct session_facts){.pid = 4000,
	                                .mode = 2,
	                                .interval_ns = 1000000,
	                                .start_monotonic_ns = 1,
	                                .start_realtime_ns = 1700000000,
	                                .clock = "none",
	                                .vm = "none",
	                                .writer = "write_large_dump"});
	write_symbols(large);
	for (uint32_t i = 0; i < stack_count; i++)
		write_sample(large, &stacks[i]);
	while (large->written_bytes < wanted_bytes)
		write_sample(large, &stacks[next_random(large, stack_count)]);
	sysprof_write_session_end(&large->encoder, large->time_ns + 1,
	                          large->sample_count, 0);
	sysprof_write_end(&large->encoder);
}

int main(int argc, char **argv)
{
	static struct large large;
	static uint8_t buffer[1 << 20];
	uint64_t megabytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	uint32_t count =
		argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 10000;
	struct stack *stacks = calloc(count ? count : 1, sizeof(*stacks));

	if (argc < 2 || argc > 3 || count == 0 || stacks == NULL ||
	    !call_tree_open(&large.tree, CALL_TREE_NODES_DEFAULT)) {
		fputs("usage: write_large_dump MEGABYTES [STACKS]\n", stderr);
		return 2;
	}
	sysprof_encoder_open(&large.encoder, buffer, sizeof(buffer), flush,
	                     &large);
	for (uint32_t i = 0; i < count; i++)
		make_stack(&large, &stacks[i]);
	write_dump(&large, megabytes * 1000000, stacks, count);
	call_tree_close(&large.tree);
	free(stacks);
	fprintf(stderr, "%llu samples, %llu bytes\n",
	        (unsigned long long)large.sample_count,
	        (unsigned long long)large.written_bytes);
	return sysprof_encoder_is_open(&large.encoder) ? 0 : 1;
}
