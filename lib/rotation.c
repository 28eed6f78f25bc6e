// SPDX-License-Identifier: MIT
/* Rotation; see rotation.h. */
#include "rotation.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lmisclib.h"
#include "own_thread.h"

/* Of the disk that all dumps may take, one dump takes no more than this part: the
 * latest past is there however little it is. */
#define DUMP_SHARE 4

#define RETRY_NS UINT64_C(1000000000)
/* A disk that is full stays so for longer. */
#define RETRY_WRITE_NS UINT64_C(10000000000)

/* Milliseconds that another dump may have taken. */
#define NAMES_TRIED 1000

#define DAYS_PER_ERA 146097 /* 400 years */

/* ---- options ----------------------------------------------------------------- */

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit times[] = {{"", UINT64_C(1000000000)},
                                    {"s", UINT64_C(1000000000)},
                                    {"min", UINT64_C(60000000000)},
                                    {"h", UINT64_C(3600000000000)},
                                    {NULL, 0}};
static const struct unit sizes[] = {{"K", UINT64_C(1) << 10},
                                    {"M", UINT64_C(1) << 20},
                                    {"G", UINT64_C(1) << 30},
                                    {NULL, 0}};

/* A number and one of the units; 0 if it is something else. */
static uint64_t read_quantity(const char *text, const struct unit *units)
{
	char *end;
	double number;

	if (*text < '0' || *text > '9')
		return 0;
	number = strtod(text, &end);
	while (units->name && strcmp(units->name, end) != 0)
		units++;
	number *= (double)units->factor;
	return number >= 1 && number < 1e18 ? (uint64_t)number : 0;
}

bool rotation_read_when(const char *text, struct rotation_options *options)
{
	options->period_ns = read_quantity(text, times);
	options->dump_bytes = read_quantity(text, sizes);
	return options->period_ns >= ROTATION_PERIOD_NS_MIN ||
	       options->dump_bytes >= ROTATION_DUMP_BYTES_MIN;
}

bool rotation_read_total(const char *text, struct rotation_options *options)
{
	options->total_bytes = read_quantity(text, sizes);
	return options->total_bytes >= ROTATION_TOTAL_BYTES_MIN;
}

/* ---- files ------------------------------------------------------------------- */

static int create_here(void *context, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	(void)context;
	return fd >= 0 ? fd : -errno;
}

static void remove_here(void *context, const char *path, dev_t device,
                        ino_t inode)
{
	(void)context;
	dump_file_unlink(path, device, inode);
}

static const struct rotation_files files_here = {
	.create = create_here,
	.remove = remove_here,
};

/* ---- dumps ------------------------------------------------------------------- */

bool rotation_is_on(const struct rotation_options *options)
{
	return options->period_ns > 0 || options->dump_bytes > 0;
}

void rotation_open(struct rotation *rotation,
                   const struct rotation_options *options, const char *path)
{
	uint64_t share = options->total_bytes / DUMP_SHARE;

	rotation->options = *options;
	rotation->path = path;
	if (!rotation->options.files)
		rotation->options.files = &files_here;
	if (options->dump_bytes == 0 || options->dump_bytes > share)
		rotation->options.dump_bytes = share;
}

/* Of the Gregorian calendar, for days since 1970. The years of an era begin with
 * March here, so that a leap day is the last one. Not by gmtime_r(3): it takes a
 * lock, which a child of fork(2) would find locked for ever. */
static void format_day(uint64_t days_since_1970, char text[16])
{
	unsigned days = (unsigned)days_since_1970 + 719468; /* since 0-03-01 */
	unsigned era = days / DAYS_PER_ERA, day = days % DAYS_PER_ERA;
	unsigned year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	unsigned month;

	day -= 365 * year + year / 4 - year / 100;
	month = (5 * day + 2) / 153;
	day = day - (153 * month + 2) / 5 + 1;
	year += 400 * era + (month >= 10);
	month = month < 10 ? month + 3 : month - 9;
	snprintf(text, 16, "%04u%02u%02u", year % 10000, month, day);
}

/* False: it does not fit. */
static bool name_dump(const struct rotation *rotation, uint64_t begin_ns,
                      char path[PATH_MAX])
{
	unsigned ms = (unsigned)(begin_ns / 1000000u % (24 * 3600 * 1000u));
	char day[16];

	format_day(begin_ns / 1000000000u / (24 * 3600u), day);
	return snprintf(path, PATH_MAX, "%s.%d.%sT%02u%02u%02u.%03uZ",
	                rotation->path, (int)getpid(), day, ms / 3600000,
	                ms / 60000 % 60, ms / 1000 % 60, ms % 1000) < PATH_MAX;
}

/* Creates a file that is not there yet: two dumps of one millisecond would have one
 * name, be they of profiles that follow each other or run at once. Returns its
 * descriptor, or -errno. */
static int create_dump(const struct rotation *rotation, uint64_t *begin_ns,
                       char path[PATH_MAX])
{
	const struct rotation_files *files = rotation->options.files;
	int fd;

	*begin_ns = clock_ns(CLOCK_REALTIME);
	for (int i = 0; i < NAMES_TRIED; i++) {
		if (!name_dump(rotation, *begin_ns, path))
			return -ENAMETOOLONG;
		fd = files->create(files->context, path);
		if (fd != -EEXIST)
			return fd;
		*begin_ns += 1000000;
	}
	return -EEXIST;
}

int rotation_next_file(struct rotation *rotation, struct dump_file *file,
                       struct error *error)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t begin_ns;
	char path[PATH_MAX];
	int result, fd;

	rotation->retry_ns = now_ns + RETRY_NS;
	fd = create_dump(rotation, &begin_ns, path);
	if (fd < 0)
		return dump_file_refuse(fd == -ENAMETOOLONG ? rotation->path
		                                            : path,
		                        -fd, error);
	result = dump_file_adopt(file, path, fd, error);
	if (result < 0)
		return -1;
	rotation->is_interrupted = false;
	file->begin_ns = begin_ns;
	rotation->due_ns = now_ns + rotation->options.period_ns;
	return 0;
}

bool rotation_is_due(const struct rotation *rotation, uint64_t dump_bytes)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	if (now_ns < rotation->retry_ns)
		return false;
	return rotation->is_interrupted ||
	       dump_bytes >= rotation->options.dump_bytes ||
	       (rotation->options.period_ns > 0 && now_ns >= rotation->due_ns);
}

void rotation_interrupt(struct rotation *rotation)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	rotation->is_interrupted = true;
	rotation->retry_ns = now_ns + RETRY_WRITE_NS;
	if (rotation->options.period_ns > 0 &&
	    rotation->due_ns < rotation->retry_ns)
		rotation->retry_ns = rotation->due_ns;
	if (rotation->retry_ns < now_ns + RETRY_NS)
		rotation->retry_ns = now_ns + RETRY_NS;
}

void rotation_keep(struct rotation *rotation, const struct dump_file *file)
{
	size_t place =
		(rotation->oldest + rotation->count) % ROTATION_DUMPS_MAX;

	rotation->dumps[place] = (struct rotated_dump){
		.begin_ns = file->begin_ns,
		.bytes = file->written_bytes,
		.device = file->device,
		.inode = file->inode,
	};
	rotation->count++;
	rotation->kept_bytes += file->written_bytes;
}

static void remove_dump(const struct rotation *rotation,
                        const struct rotated_dump *dump)
{
	const struct rotation_files *files = rotation->options.files;
	char path[PATH_MAX];

	if (name_dump(rotation, dump->begin_ns, path))
		files->remove(files->context, path, dump->device, dump->inode);
}

size_t rotation_trim(struct rotation *rotation, uint64_t dump_bytes)
{
	size_t removed_count = 0;

	while (rotation->count > 0 && (rotation->count == ROTATION_DUMPS_MAX ||
	                               rotation->kept_bytes + dump_bytes >
	                                       rotation->options.total_bytes)) {
		const struct rotated_dump *dump =
			&rotation->dumps[rotation->oldest];

		remove_dump(rotation, dump);
		rotation->kept_bytes -= dump->bytes;
		rotation->oldest = (rotation->oldest + 1) % ROTATION_DUMPS_MAX;
		rotation->count--;
		removed_count++;
	}
	return removed_count;
}
