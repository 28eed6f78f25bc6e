// SPDX-License-Identifier: MIT
/* Recording a process that runs already; see record_process.h. */
#include "record_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach.h"
#include "attach_block.h"
#include "commands.h"

/* The start reads unwind tables, the end waits for the disk. */
#define START_PATIENCE_MS 20000
#define END_PATIENCE_MS   20000

static const char *const variables[] = {
	"LUAJIT_SYSPROF_MODE",   "LUAJIT_SYSPROF_INTERVAL",
	"LUAJIT_SYSPROF_CLOCK",  "LUAJIT_SYSPROF_OVERHEAD",
	"LUAJIT_SYSPROF_SIGNAL",
};

/* Nobody would end the profiles of its children. */
static void write_settings(const struct process_recording *recording,
                           char *settings, size_t bytes)
{
	size_t used = (size_t)snprintf(
		settings, bytes,
		"LUAJIT_SYSPROF_PATH=%s\nLUAJIT_SYSPROF_LIBRARY=%s\n"
		"LUAJIT_SYSPROF_FORK=stop\n",
		recording->path, recording->library);

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *value = getenv(variables[i]);

		if (value && used < bytes)
			used += (size_t)snprintf(settings + used, bytes - used,
			                         "%s=%s\n", variables[i],
			                         value);
	}
}

/* ---- the dump ----------------------------------------------------------------- */

/* It is opened here, since the process may have fewer rights, or another root. */
static int open_dump(const char *path, bool *is_new)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	*is_new = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		tell("%s: %s", path, strerror(errno));
	return fd;
}

static void show_dump(const char *path)
{
	struct stat status;

	if (stat(path, &status) == 0)
		tell("%s: %lld bytes", path, (long long)status.st_size);
}

/* ---- from start to end ---------------------------------------------------------- */

static int open_signals(void)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	return signalfd(-1, &ends, SFD_CLOEXEC);
}

/* A signal, the time, or the end of the process. */
static void wait_for_end(const struct attachment *attachment, int signals,
                         double seconds)
{
	struct pollfd ready[] = {
		{.fd = signals, .events = POLLIN},
		{.fd = attachment->pid_fd, .events = POLLIN},
		{.fd = attachment->socket, .events = 0},
	};
	double left_ms = seconds > 0 ? ceil(seconds * 1000) : INFINITY;

	/* poll(2) counts in int. */
	while (left_ms > 0) {
		int wait_ms = left_ms < INT_MAX ? (int)left_ms : INT_MAX;

		if (poll(ready, 3, isinf(left_ms) ? -1 : wait_ms) != 0)
			return;
		left_ms -= wait_ms;
	}
}

/* A process that ends closes its sockets first. */
static bool has_ended(const struct attachment *attachment, int patience_ms)
{
	struct pollfd ready = {.fd = attachment->pid_fd, .events = POLLIN};

	return poll(&ready, 1, patience_ms) > 0;
}

static bool start(const struct attachment *attachment,
                  const struct process_recording *recording, int dump)
{
	char settings[ATTACH_MESSAGE_BYTES], text[BLOCK_ERROR_BYTES];
	char kind;

	write_settings(recording, settings, sizeof(settings));
	if (!attach_send_settings(attachment, settings, dump))
		return false;
	kind = attach_receive(attachment, START_PATIENCE_MS, text,
	                      sizeof(text));
	if (kind == ATTACH_STARTED) {
		tell("process %d: %s; %s", (int)recording->pid, text,
		     recording->seconds > 0 ? "Ctrl-C ends it earlier"
		                            : "Ctrl-C ends it");
		return true;
	}
	tell("process %d is not profiled: %s", (int)recording->pid,
	     kind == ATTACH_REFUSED        ? text
	     : has_ended(attachment, 1000) ? "it has ended"
	                                   : "the agent does not answer");
	return false;
}

static bool is_agent_gone(const struct attachment *attachment)
{
	struct pollfd ready = {.fd = attachment->socket, .events = 0};

	return poll(&ready, 1, 0) > 0;
}

/* It does not answer. */
static int explain(const struct attachment *attachment)
{
	bool is_gone = is_agent_gone(attachment);

	if (has_ended(attachment, is_gone ? 2000 : 0))
		return STATUS_GOOD;
	if (is_gone) {
		tell("process %d has executed another program, and the profile "
		     "ended with the first one",
		     (int)attachment->pid);
		return STATUS_GOOD;
	}
	tell("process %d does not answer, and completes the dump when it goes "
	     "on",
	     (int)attachment->pid);
	return STATUS_BAD;
}

static int stop(const struct attachment *attachment)
{
	char text[BLOCK_ERROR_BYTES];
	char kind = '\0';

	if (send(attachment->socket, "", 1, MSG_NOSIGNAL) == 1)
		kind = attach_receive(attachment, END_PATIENCE_MS, text,
		                      sizeof(text));
	if (kind == ATTACH_ENDED)
		return STATUS_GOOD;
	if (kind == '\0')
		return explain(attachment);
	tell("process %d: %s", (int)attachment->pid, text);
	return STATUS_BAD;
}

/* The last byte of a dump that is whole. */
#define DUMP_END 0x80

/* What a process that was killed, or another program, could not complete. */
static void tell_of_end(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned char last = 0;

	if (fd < 0)
		return;
	if (lseek(fd, -1, SEEK_END) < 0 || read(fd, &last, 1) != 1 ||
	    last != DUMP_END)
		tell("the process was killed or replaced: its last half second "
		     "is missing (--partial shows the dump)");
	close(fd);
}

int record_process(const struct process_recording *recording)
{
	struct attachment attachment;
	int status = STATUS_BAD, signals;
	bool is_new;
	int dump = open_dump(recording->path, &is_new);

	if (dump < 0)
		return STATUS_BAD;
	signals = open_signals();
	if (signals >= 0 && attach_open(&attachment, recording->pid,
	                                recording->agent, recording->force)) {
		if (start(&attachment, recording, dump)) {
			wait_for_end(&attachment, signals, recording->seconds);
			status = stop(&attachment);
			show_dump(recording->path);
			if (is_agent_gone(&attachment))
				tell_of_end(recording->path);
			is_new = false;
		}
		attach_close(&attachment);
	}
	if (is_new)
		unlink(recording->path);
	close(dump);
	return status;
}
