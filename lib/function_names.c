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

static const struct source_file *find_file(struct function_names *names,
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
static size_t copy_name(const char *found, char *name, size_t capacity)
{
	size_t length = found ? strlen(found) : 0;

	if (!length || length >= capacity)
		return 0;
	memcpy(name, found, length + 1);
	return length;
}

/* A chunk loaded from a string without a name is called by its own text. What
 * was cut off may have a second function in the last line. */
static size_t find_in_text(const char *text, size_t bytes, uint32_t first_line,
                           char *name, size_t capacity)
{
	struct lua_definitions definitions;
	size_t length;

	if (bytes >= FUNCTION_NAMES_TEXT_BYTES)
		while (bytes > 0 && text[bytes - 1] != '\n')
			bytes--;
	if (lua_definitions_read(&definitions, text, bytes))
		return 0;
	length = copy_name(lua_definitions_find(&definitions, first_line), name,
	                   capacity);
	lua_definitions_free(&definitions);
	return length;
}

size_t function_names_find(struct function_names *names, const char *chunk,
                           size_t chunk_bytes, uint32_t first_line, char *name,
                           size_t capacity)
{
	const struct source_file *file;

	if (capacity == 0)
		return 0;
	name[0] = '\0';
	if (chunk_bytes < 2 || chunk_bytes > PATH_MAX || chunk[0] == '=' ||
	    memchr(chunk, '\0', chunk_bytes))
		return 0;
	if (chunk[0] != '@')
		return find_in_text(chunk, chunk_bytes, first_line, name,
		                    capacity);
	file = find_file(names, chunk + 1, chunk_bytes - 1);
	if (!file)
		return 0;
	return copy_name(lua_definitions_find(&file->definitions, first_line),
	                 name, capacity);
}

size_t function_names_held_bytes(const struct function_names *names)
{
	return sizeof(*names) + names->held_bytes;
}
