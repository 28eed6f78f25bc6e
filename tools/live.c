// SPDX-License-Identifier: MIT
/* Reading with somebody looking on; see live.h. */
#include "live.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PROGRESS_NS 200000000u  /* between two lines */
#define PATIENCE_NS 1000000000u /* before the first one */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- progress ---------------------------------------------------------- */

void progress_open(struct progress *progress, int file)
{
	struct stat status;

	*progress = (struct progress){
		.start_ns = now_ns(),
		.on_terminal = isatty(STDERR_FILENO) != 0,
	};
	if (fstat(file, &status) == 0 && S_ISREG(status.st_mode))
		progress->total_bytes = (uint64_t)status.st_size;
}

void progress_tell(void *context, uint64_t bytes)
{
	struct progress *progress = context;
	uint64_t now = now_ns();

	if (!progress->on_terminal || now - progress->start_ns < PATIENCE_NS ||
	    now - progress->told_ns < PROGRESS_NS)
		return;
	progress->told_ns = now;
	progress->shown = true;

	double megabytes = (double)bytes / 1e6;
	double rate = megabytes * 1e9 / (double)(now - progress->start_ns);
	if (progress->total_bytes >= bytes && bytes > 0)
		fprintf(stderr, "\r%3.0f%% of %.0f MB read, %.0f MB/s ",
		        100.0 * (double)bytes / (double)progress->total_bytes,
		        (double)progress->total_bytes / 1e6, rate);
	else
		fprintf(stderr, "\r%.0f MB read, %.0f MB/s ", megabytes, rate);
}

void progress_close(struct progress *progress)
{
	if (progress->shown)
		fputs("\r\033[K", stderr);
	progress->shown = false;
}

/* ---- files that grow --------------------------------------------------- */

static void show_when_due(struct follower *follower)
{
	uint64_t now = now_ns();

	if (now - follower->shown_ns < follower->interval_ns)
		return;
	follower->shown_ns = now;
	follower->show(follower->context);
}

/* A regular file is always ready: its end is waited out. */
static void wait_for_more(const struct follower *follower)
{
	uint64_t wait_ns = follower->interval_ns / 4;
	struct timespec wait = {
		.tv_sec = (time_t)(wait_ns / 1000000000u),
		.tv_nsec = (long)(wait_ns % 1000000000u),
	};

	nanosleep(&wait, NULL);
}

/* Has the file become shorter than what was read of it? */
static bool was_cut(const struct follower *follower)
{
	struct stat status;
	off_t at = lseek(follower->file, 0, SEEK_CUR);

	return at > 0 && fstat(follower->file, &status) == 0 &&
	       status.st_size < at;
}

size_t follower_read(void *context, void *bytes, size_t count)
{
	struct follower *follower = context;
	struct stat status;
	bool is_regular =
		fstat(follower->file, &status) == 0 && S_ISREG(status.st_mode);
	int patience_ms = (int)(follower->interval_ns / 4000000u) + 1;

	for (;;) {
		struct pollfd ready = {.fd = follower->file, .events = POLLIN};
		ssize_t got;

		show_when_due(follower);
		if (!is_regular && poll(&ready, 1, patience_ms) == 0)
			continue;
		got = read(follower->file, bytes, count);
		if (got > 0)
			return (size_t)got;
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 || !is_regular || was_cut(follower)) {
			errno = got < 0 ? errno : 0;
			return 0;
		}
		wait_for_more(follower);
	}
}
