// SPDX-License-Identifier: MIT
/*
 * Lua module sysprof: reads dumps of the sampling profiler.
 *
 *   sysprof(arg), sysprof(path)   as the program luajit-parse-sysprof
 *   sysprof.parse(path, options)  distinct samples with their frames
 */
#include <stdlib.h>

#include <lauxlib.h>
#include <lua.h>

#include "command.h"
#include "profile/load.h"
#include "stream/frame_name.h"
#include "sysprof_command.h"

__attribute__((visibility("default"))) int luaopen_sysprof(lua_State *L);

/* ---- tables -------------------------------------------------------------------- */

static const char *kind_name(uint8_t kind)
{
	switch (kind) {
	case FRAME_HOST:
		return "native";
	case FRAME_LUA:
		return "lua";
	case FRAME_C:
		return "c";
	case FRAME_FAST:
		return "library";
	case FRAME_MARKER:
		return "marker";
	}
	return "other";
}

static void push_frame(lua_State *L, const struct profile_frame *frame)
{
	lua_createtable(L, 0, 7);
	lua_command_set_string(L, "name", frame->name);
	lua_command_set_string(L, "kind", kind_name(frame->kind));
	if (frame->file[0] != '\0')
		lua_command_set_string(L, "file", frame->file);
	if (frame->line != 0)
		lua_command_set_number(L, "line", frame->line);
	if (frame->first_line != 0)
		lua_command_set_number(L, "first_line", frame->first_line);
	lua_pushboolean(L, (frame->flags & FRAME_FLAG_COMPILED) != 0);
	lua_setfield(L, -2, "compiled");
	lua_pushboolean(L, (frame->flags & PROFILE_FLAG_KERNEL) != 0);
	lua_setfield(L, -2, "kernel");
}

/* Frames are shared between samples: one table for each, at index frames. */
static void push_shared_frame(lua_State *L, int frames,
                              const struct profile *profile, uint32_t index)
{
	lua_rawgeti(L, frames, (int)index);
	if (!lua_isnil(L, -1))
		return;
	lua_pop(L, 1);
	push_frame(L, &profile->frames[index]);
	lua_pushvalue(L, -1);
	lua_rawseti(L, frames, (int)index);
}

static void push_stack(lua_State *L, int frames, const struct profile *profile,
                       uint32_t node)
{
	uint32_t at;
	int depth = 0;

	for (at = node; at != PROFILE_ROOT; at = profile->nodes[at].parent)
		depth++;
	lua_createtable(L, depth, 0);
	for (at = node; at != PROFILE_ROOT; at = profile->nodes[at].parent) {
		push_shared_frame(L, frames, profile, profile->nodes[at].frame);
		lua_rawseti(L, -2, depth--);
	}
}

static void push_sample(lua_State *L, int frames, const struct profile *profile,
                        const struct profile_count *count)
{
	const struct profile_tag *tag = &profile->tags[count->tag];

	lua_createtable(L, 0, 7);
	lua_command_set_number(L, "count", (double)count->samples);
	lua_command_set_string(L, "state", sample_state_name(tag->state));
	lua_command_set_number(L, "thread_id", (double)tag->thread_id);
	lua_command_set_number(L, "vm_number", (double)tag->vm_number);
	if (tag->trace != 0)
		lua_command_set_string(L, "trace",
		                       profile->frames[tag->trace].name);
	if (tag->label != NULL)
		lua_command_set_string(L, "label", tag->label);
	push_stack(L, frames, profile, count->node);
	lua_setfield(L, -2, "frames");
}

static void push_lost(lua_State *L, const struct profile *profile)
{
	lua_newtable(L);
	for (size_t i = 0; i < PROFILE_LOST_REASONS; i++)
		if (profile->lost[i] > 0)
			lua_command_set_number(L, lost_reason_name(i),
			                       (double)profile->lost[i]);
}

static void push_profile(lua_State *L, const struct profile *profile,
                         bool complete)
{
	int frames;

	lua_createtable(L, 0, 6);
	lua_newtable(L);
	frames = lua_gettop(L);
	lua_createtable(L, (int)profile->count_count, 0);
	for (size_t i = 0; i < profile->count_count; i++) {
		push_sample(L, frames, profile, &profile->counts[i]);
		lua_rawseti(L, -2, (int)i + 1);
	}
	lua_setfield(L, frames - 1, "samples");
	lua_pop(L, 1);
	push_lost(L, profile);
	lua_setfield(L, -2, "lost");
	lua_command_set_number(L, "sample_count",
	                       (double)profile->sample_count);
	lua_command_set_number(L, "lost_count",
	                       (double)profile_lost_count(profile));
	if (profile->session.known)
		lua_command_set_number(L, "interval",
		                       (double)profile->session.interval_ns /
		                               1e6);
	lua_pushboolean(L, complete);
	lua_setfield(L, -2, "complete");
}

/* ---- parse ------------------------------------------------------------------- */

struct load_request {
	struct profile *profile;
	FILE *file;
	const char *path;
	struct load_options options;
	struct load_result result;
};

static int collect_profile(lua_State *L)
{
	struct profile **profile = lua_touserdata(L, 1);

	if (*profile == NULL)
		return 0;
	profile_close(*profile);
	free(*profile);
	*profile = NULL;
	return 0;
}

/* Closes the profile also where Lua runs out of memory. */
static struct profile **push_holder(lua_State *L)
{
	struct profile **holder = lua_newuserdata(L, sizeof(*holder));

	*holder = NULL;
	lua_createtable(L, 0, 1);
	lua_pushcfunction(L, collect_profile);
	lua_setfield(L, -2, "__gc");
	lua_setmetatable(L, -2);
	return holder;
}

static void load(void *context)
{
	struct load_request *request = context;

	profile_load(request->profile, request->file, request->path,
	             &request->options, &request->result);
}

static int parse(lua_State *L)
{
	struct profile **holder;
	struct load_request request = {.options.labels = true};
	bool partial, loaded;

	lua_settop(L, 2);
	holder = push_holder(L);
	request.file = lua_command_open(L, &request.path, &partial);
	if (request.file == NULL)
		return 2;
	request.profile = calloc(1, sizeof(*request.profile));
	loaded = request.profile != NULL && lua_command_load(load, &request);
	fclose(request.file);
	if (!loaded)
		return luaL_error(L, "out of memory for %s", request.path);
	*holder = request.profile;
	if (!request.result.complete && !partial) {
		lua_pushnil(L);
		lua_pushstring(L, request.result.error);
		return 2;
	}
	push_profile(L, request.profile, request.result.complete);
	if (request.result.complete)
		return 1;
	lua_pushstring(L, request.result.error);
	return 2;
}

/* ---- the module ---------------------------------------------------------------- */

static int call(lua_State *L)
{
	return lua_command_run(L, sysprof_command, "luajit-parse-sysprof");
}

int luaopen_sysprof(lua_State *L)
{
	lua_createtable(L, 0, 1);
	lua_pushcfunction(L, parse);
	lua_setfield(L, -2, "parse");
	lua_createtable(L, 0, 1);
	lua_pushcfunction(L, call);
	lua_setfield(L, -2, "__call");
	lua_setmetatable(L, -2);
	return 1;
}
