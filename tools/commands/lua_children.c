// SPDX-License-Identifier: MIT
/* Children that run Lua; see lua_children.h. */
#include "lua_children.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"

/* Workers of workers of a server that a shell has started, and some more. */
#define DEPTH_MAX 6

struct search {
	const pid_t *known;
	size_t known_count;
	char *list;
	size_t used;
};

static bool is_known(const struct search *search, pid_t pid)
{
	for (size_t i = 0; i < search->known_count; i++)
		if (search->known[i] == pid)
			return true;
	return false;
}

static bool has_luajit(pid_t pid)
{
	struct target target;
	bool has;

	if (target_open(&target, pid) != 0)
		return false;
	has = target_find_any_symbol(&target, "luaJIT_setmode") != 0;
	target_close(&target);
	return has;
}

/* As many as there is room for. */
static void add(struct search *search, pid_t pid)
{
	size_t room = LUA_CHILDREN_BYTES - search->used;

	if (room >= sizeof(",4194304"))
		search->used += (size_t)snprintf(
			search->list + search->used, room, "%s%d",
			search->used > 0 ? "," : "", (int)pid);
}

static void search_below(struct search *search, pid_t pid, int depth);

static void search_thread(struct search *search, pid_t pid, const char *thread,
                          int depth)
{
	char path[320];
	FILE *children;
	int child;

	snprintf(path, sizeof(path), "/proc/%d/task/%.256s/children", (int)pid,
	         thread);
	children = fopen(path, "re");
	while (children && fscanf(children, "%d", &child) == 1) {
		if (!is_known(search, child) && has_luajit(child))
			add(search, child);
		search_below(search, child, depth + 1);
	}
	if (children)
		fclose(children);
}

static void search_below(struct search *search, pid_t pid, int depth)
{
	const struct dirent *entry;
	char path[64];
	DIR *threads;

	if (depth == DEPTH_MAX)
		return;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	threads = opendir(path);
	while (threads && (entry = readdir(threads)) != NULL)
		if (entry->d_name[0] != '.')
			search_thread(search, pid, entry->d_name, depth);
	if (threads)
		closedir(threads);
}

bool lua_children_find(pid_t pid, const pid_t *known, size_t known_count,
                       char list[LUA_CHILDREN_BYTES])
{
	struct search search = {
		.known = known, .known_count = known_count, .list = list};

	list[0] = '\0';
	search_below(&search, pid, 0);
	return search.used > 0;
}
