// SPDX-License-Identifier: MIT
/*
 * Function names: the source files and how much of them is remembered. Runs on
 * the writer thread; reads files.
 *
 * A file counts only if neither its content nor its place in the directory
 * changed since the process began: mtime alone is not enough, since package
 * managers and rsync set it back to that of the original.
 */
#include "function_names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lua_definitions.h"

#define SOURCE_BYTES_MAX ((off_t)4 << 20) /* larger files give no names */
#define CACHE_FILES_MAX  256
#define CACHE_BYTES_MAX  ((size_t)8 << 20)
#define NS_PER_SECOND    1000000000

/* What is known of a file, be it that it cannot be read. */
struct source_file {
	struct source_file *next; /* used longer ago */
	struct lua_definitions definitions;
	uint32_t confirmed_count; /* functions called by the names they have */
	uint32_t
		differing_count; /* by another one; an alias, or another text */
	size_t held_bytes;
	size_t path_bytes;
	char path[]; /* terminated */
};

struct function_names {
	int64_t process_start_ns;  /* CLOCK_REALTIME, not too early */
	struct source_file *files; /* last used first */
	size_t file_count;
	size_t held_bytes;
};

/* --- time ---------------------------------------------------------------- */

static int64_t to_ns(const struct timespec *time)
{
	return (int64_t)time->tv_sec * NS_PER_SECOND + time->tv_nsec;
}

static int64_t read_clock_ns(clockid_t clock)
{
	struct timespec now = {0};

	clock_gettime(clock, &now);
	return to_ns(&now);
}

/* Ticks since boot (field 22 of proc(5) stat), or -1. */
static long long read_start_ticks(void)
{
	char text[1024];
	const char *field;
	long long ticks = -1;
	FILE *file = fopen("/proc/self/stat", "re");
	size_t length;

	if (!file)
		return -1;
	length = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[length] = '\0';
	/* The name of the program may hold spaces and parentheses. */
	field = strrchr(text, ')');
	for (int number = 2; field && number < 22; number++)
		field = strchr(field + 1, ' ');
	if (!field || sscanf(field, "%lld", &ticks) != 1)
		return -1;
	return ticks;
}

/* The end of the tick in which the process began. Where that cannot be told,
 * the beginning of time: every file is younger. */
static int64_t read_process_start_ns(void)
{
	long long ticks = read_start_ticks();
	long ticks_per_second = sysconf(_SC_CLK_TCK);

	if (ticks < 0 || ticks_per_second <= 0)
		return 0;
	return read_clock_ns(CLOCK_REALTIME) - read_clock_ns(CLOCK_BOOTTIME) +
	       (ticks + 1) * (NS_PER_SECOND / ticks_per_second);
}

/* --- files --------------------------------------------------------------- */

static bool is_older(const struct stat *status, int64_t process_start_ns)
{
	return to_ns(&status->st_mtim) <= process_start_ns &&
	       to_ns(&status->st_ctim) <= process_start_ns;
}

/* The whole file, or NULL if it is too large, too young or unreadable. */
static char *read_file(int fd, int64_t process_start_ns, size_t *bytes)
{
	struct stat status;
	size_t size, length = 0;
	char *text;

	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
	    status.st_size > SOURCE_BYTES_MAX ||
	    !is_older(&status, process_start_ns))
		return NULL;
	size = (size_t)status.st_size;
	text = malloc(size + 1);
	while (text && length < size) {
		ssize_t got = read(fd, text + length, size - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		length += (size_t)got;
	}
	/* It may have changed while it was read. */
	if (!text || length < size || fstat(fd, &status) != 0 ||
	    !is_older(&status, process_start_ns)) {
		free(text);
		return NULL;
	}
	*bytes = length;
	return text;
}

static void read_definitions(struct source_file *file, int64_t process_start_ns)
{
	int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t bytes;
	char *text;

	if (fd < 0)
		return;
	text = read_file(fd, process_start_ns, &bytes);
	close(fd);
	if (text)
		(void)lua_definitions_read(&file->definitions, text, bytes);
	free(text);
}

static struct source_file *file_new(const char *path, size_t path_bytes,
                                    int64_t process_start_ns)
{
	struct source_file *file = calloc(1, sizeof(*file) + path_bytes + 1);

	if (!file)
		return NULL;
	memcpy(file->path, path, path_bytes);
	file->path_bytes = path_bytes;
	read_definitions(file, process_start_ns);
	file->held_bytes =
		sizeof(*file) + path_bytes + file->definitions.names_capacity +
		file->definitions.capacity * sizeof(*file->definitions.items);
	return file;
}

static void file_free(struct source_file *file)
{
	lua_definitions_free(&file->definitions);
	free(file);
}

/* --- cache --------------------------------------------------------------- */

static struct source_file *take_cached(struct function_names *names,
                                       const char *path, size_t path_bytes)
{
	struct source_file **link = &names->files;
	struct source_file *file;

	while ((file = *link) && (file->path_bytes != path_bytes ||
	                          memcmp(file->path, path, path_bytes) != 0))
		link = &file->next;
	if (file) {
		*link = file->next;
		names->file_count--;
		names->held_bytes -= file->held_bytes;
	}
	return file;
}

static void put_first(struct function_names *names, struct source_file *file)
{
	file->next = names->files;
	names->files = file;
	names->file_count++;
	names->held_bytes += file->held_bytes;
}

/* The last used one stays, whatever it holds. */
static void forget_oldest(struct function_names *names)
{
	while (names->file_count > 1 && (names->file_count > CACHE_FILES_MAX ||
	                                 names->held_bytes > CACHE_BYTES_MAX)) {
		struct source_file **link = &names->files;
		struct source_file *file;

		while ((*link)->next)
			link = &(*link)->next;
		file = *link;
		*link = NULL;
		names->file_count--;
		names->held_bytes -= file->held_bytes;
		file_free(file);
	}
}

static struct source_file *find_file(struct function_names *names,
                                     const char *path, size_t path_bytes)
{
	struct source_file *file = take_cached(names, path, path_bytes);

	if (!file)
		file = file_new(path, path_bytes, names->process_start_ns);
	if (!file)
		return NULL;
	put_first(names, file);
	forget_oldest(names);
	return file;
}

/* --- interface ----------------------------------------------------------- */

struct function_names *function_names_open(void)
{
	struct function_names *names = calloc(1, sizeof(*names));

	if (names)
		names->process_start_ns = read_process_start_ns();
	return names;
}

void function_names_close(struct function_names *names)
{
	if (!names)
		return;
	while (names->files) {
		struct source_file *file = names->files;

		names->files = file->next;
		file_free(file);
	}
	free(names);
}

/* Half a name would be a wrong one: 0 where it does not fit. */
static size_t copy_name(const char *found, size_t bytes, char *name,
                        size_t capacity)
{
	if (bytes >= capacity)
		bytes = 0;
	memcpy(name, found, bytes);
	name[bytes] = '\0';
	return bytes;
}

static size_t copy_call_name(const struct function_facts *function, char *name,
                             size_t capacity)
{
	return copy_name(function->call_name, function->call_name_bytes, name,
	                 capacity);
}

/* Is it "c" of "c", "a.b.c" or "a.b:c"? */
static bool is_called(const struct function_facts *function, const char *name)
{
	size_t bytes = strlen(name), call_bytes = function->call_name_bytes;
	const char *last = name + bytes - call_bytes;

	return call_bytes <= bytes &&
	       !memcmp(last, function->call_name, call_bytes) &&
	       (last == name || last[-1] == '.' || last[-1] == ':');
}

/* Does what the file says count, which is this name of the function? Parameters
 * hold functions of any name. */
static bool is_believed(struct source_file *file,
                        const struct function_facts *function, const char *name)
{
	if (function->call_name_bytes > 0 && is_called(function, name))
		file->confirmed_count++;
	else if (function->call_name_bytes > 0 && !function->call_name_is_local)
		file->differing_count++;
	return file->differing_count <= file->confirmed_count;
}

static size_t find_in_file(struct source_file *file,
                           const struct function_facts *function, char *name,
                           size_t capacity)
{
	const char *found;

	switch (lua_definitions_find(&file->definitions, function->first_line,
	                             function->last_line, &found)) {
	case LUA_DEFINITION_MISSING:
		/* Another text: its other functions are not those of the
		 * program either. */
		lua_definitions_free(&file->definitions);
		break;
	case LUA_DEFINITION_UNKNOWN:
		break;
	case LUA_DEFINITION_UNNAMED:
		return 0;
	case LUA_DEFINITION_NAMED:
		if (is_believed(file, function, found))
			return copy_name(found, strlen(found), name, capacity);
		break;
	}
	return copy_call_name(function, name, capacity);
}

/* A chunk loaded from a string without a name is called by its own text. What
 * was cut off may have a second function in the last line. */
static size_t find_in_text(const struct function_facts *function, char *name,
                           size_t capacity)
{
	struct lua_definitions definitions;
	size_t bytes = function->chunk_bytes, length = 0;
	const char *found;

	if (bytes >= FUNCTION_NAMES_TEXT_BYTES)
		while (bytes > 0 && function->chunk[bytes - 1] != '\n')
			bytes--;
	if (lua_definitions_read(&definitions, function->chunk, bytes))
		return copy_call_name(function, name, capacity);
	switch (lua_definitions_find(&definitions, function->first_line,
	                             function->last_line, &found)) {
	case LUA_DEFINITION_MISSING:
	case LUA_DEFINITION_UNKNOWN:
		length = copy_call_name(function, name, capacity);
		break;
	case LUA_DEFINITION_UNNAMED:
		break;
	case LUA_DEFINITION_NAMED:
		length = copy_name(found, strlen(found), name, capacity);
		break;
	}
	lua_definitions_free(&definitions);
	return length;
}

/* It cannot be told from a main chunk, so it is not called one. */
static size_t name_stripped(const struct function_facts *function, char *name,
                            size_t capacity)
{
	static const char unknown[] = "function";
	size_t length = copy_call_name(function, name, capacity);

	return length > 0 ? length
	                  : copy_name(unknown, sizeof(unknown) - 1, name,
	                              capacity);
}

size_t function_names_find(struct function_names *names,
                           const struct function_facts *function, char *name,
                           size_t capacity)
{
	size_t chunk_bytes = function->chunk_bytes;
	struct source_file *file = NULL;

	if (capacity == 0)
		return 0;
	name[0] = '\0';
	if (function->stripped)
		return name_stripped(function, name, capacity);
	if (function->first_line == 0)
		return 0;
	if (chunk_bytes < 2 || chunk_bytes > PATH_MAX ||
	    function->chunk[0] == '=' ||
	    memchr(function->chunk, '\0', chunk_bytes))
		return copy_call_name(function, name, capacity);
	if (function->chunk[0] != '@')
		return find_in_text(function, name, capacity);
	file = find_file(names, function->chunk + 1, chunk_bytes - 1);
	if (!file)
		return copy_call_name(function, name, capacity);
	return find_in_file(file, function, name, capacity);
}

size_t function_names_held_bytes(const struct function_names *names)
{
	return sizeof(*names) + names->held_bytes;
}
