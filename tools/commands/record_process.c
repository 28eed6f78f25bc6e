// SPDX-License-Identifier: MIT
/* Recording processes that run already; see record_process.h. */
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
#include <time.h>
#include <unistd.h>

#include "attach.h"
#include "attach_block.h"
#include "commands.h"
#include "lua_children.h"
#include "perf_run.h"
#include "process.h"
#include "rotated_dumps.h"

/* The start reads unwind tables, the end waits for the disk. */
#define START_PATIENCE_MS 20000
#define END_PATIENCE_MS   20000

/* One process. */
struct recorded {
	pid_t pid;
	char path[PATH_MAX]; /* of its dump, or what the names begin with */
	int dump;            /* its descriptor, -1: none */
	bool is_new;         /* the file was not there, and has no use yet */
	struct dump_service dumps; /* of a rotation, socket -1: none */
	struct dump_time start;
	struct attachment attachment; /* socket -1: it is not attached to */
	bool is_started;
	bool is_over; /* the process has ended, or the agent in it */
};

struct recorder {
	const struct process_recording *recording;
	struct recorded *processes;
	size_t count;
	int signals; /* signalfd(2) of those that end it */
	struct perf_run perf;
};

/* ---- settings ------------------------------------------------------------------- */

static const char *const variables[] = {
	"LUAJIT_SYSPROF_MODE",     "LUAJIT_SYSPROF_INTERVAL",
	"LUAJIT_SYSPROF_CLOCK",    "LUAJIT_SYSPROF_KERNEL",
	"LUAJIT_SYSPROF_OVERHEAD", "LUAJIT_SYSPROF_SIGNAL",
};
static const char *const rotation_variables[] = {
	"LUAJIT_SYSPROF_ROTATE",
	"LUAJIT_SYSPROF_ROTATE_LIMIT",
};
static const char *const perf_variables[] = {
	"LUAJIT_SYSPROF_PERF",
	"LUAJIT_SYSPROF_PERF_DIR",
	"LUAJIT_SYSPROF_PERF_UNWIND",
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct settings {
	char text[ATTACH_MESSAGE_BYTES];
	size_t bytes;
};

static void add_variables(struct settings *settings, const char *const names[],
                          size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *value = getenv(names[i]);

		if (value && settings->bytes < sizeof(settings->text))
			settings->bytes += (size_t)snprintf(
				settings->text + settings->bytes,
				sizeof(settings->text) - settings->bytes,
				"%s=%s\n", names[i], value);
	}
}

/* Nobody would end the profiles of its children. */
static void write_settings(const struct process_recording *recording,
                           const struct recorded *recorded,
                           struct settings *settings)
{
	settings->bytes = (size_t)snprintf(
		settings->text, sizeof(settings->text),
		"LUAJIT_SYSPROF_PATH=%s\nLUAJIT_SYSPROF_LIBRARY=%s\n"
		"LUAJIT_SYSPROF_FORK=stop\n",
		recorded->path, recording->library);
	add_variables(settings, variables, COUNT_OF(variables));
	if (recording->rotates)
		add_variables(settings, rotation_variables,
		              COUNT_OF(rotation_variables));
	if (recording->has_perf)
		add_variables(settings, perf_variables,
		              COUNT_OF(perf_variables));
}

/* ---- the dump ----------------------------------------------------------------- */

static void name_dump(const struct process_recording *recording,
                      struct recorded *recorded)
{
	if (recording->pid_count > 1 && !recording->rotates)
		snprintf(recorded->path, sizeof(recorded->path), "%.4000s.%d",
		         recording->path, (int)recorded->pid);
	else
		snprintf(recorded->path, sizeof(recorded->path), "%s",
		         recording->path);
}

/* It is opened here, since the process may have fewer rights, or another root. */
static bool open_dump(struct recorded *recorded)
{
	const char *path = recorded->path;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	recorded->is_new = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		tell("%s: %s", path, strerror(errno));
	recorded->dump = fd;
	return fd >= 0;
}

static bool open_dumps(struct recorded *recorded)
{
	recorded->start = dump_time_now();
	recorded->dump = dump_service_start(&recorded->dumps, recorded->path,
	                                    recorded->pid);
	return recorded->dump >= 0;
}

/* facts: the number of samples, if the agent has told it. */
static void show_dump(const struct recorded *recorded, const char *facts)
{
	const char *comma = facts[0] ? ", " : "";
	struct rotated_dumps dumps;
	struct stat status;

	if (recorded->dumps.socket >= 0) {
		rotated_dumps_find(&dumps, recorded->path, recorded->pid,
		                   &recorded->start);
		tell("%s.%d.TIME: %zu dumps, %lld bytes%s%s", recorded->path,
		     (int)recorded->pid, dumps.count, dumps.bytes, comma,
		     facts);
	} else if (stat(recorded->path, &status) == 0) {
		tell("%s: %lld bytes%s%s", recorded->path,
		     (long long)status.st_size, comma, facts);
	}
}

/* The last byte of a dump that is whole. */
#define DUMP_END 0x80

/* What a process that was killed, or another program, could not complete. */
static void tell_of_end(const struct recorded *recorded)
{
	struct rotated_dumps dumps;
	const char *path = recorded->path;
	unsigned char last = 0;
	int fd;

	if (recorded->dumps.socket >= 0) {
		rotated_dumps_find(&dumps, path, recorded->pid,
		                   &recorded->start);
		path = dumps.last;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (lseek(fd, -1, SEEK_END) < 0 || read(fd, &last, 1) != 1 ||
	    last != DUMP_END)
		tell("%s: the process was killed or replaced: its last half "
		     "second is missing (--partial shows the dump)",
		     path);
	close(fd);
}

/* ---- the start ------------------------------------------------------------------- */

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

static bool attach(const struct process_recording *recording,
                   struct recorded *recorded)
{
	name_dump(recording, recorded);
	if (!(recording->rotates ? open_dumps(recorded) : open_dump(recorded)))
		return false;
	return attach_open(&recorded->attachment, recorded->pid,
	                   recording->agent, recording->force);
}

/* A process that ends closes its sockets first. */
static bool has_ended(const struct recorded *recorded, int patience_ms)
{
	struct pollfd ready = {.fd = recorded->attachment.pid_fd,
	                       .events = POLLIN};

	return poll(&ready, 1, patience_ms) > 0;
}

static void tell_of_children(const struct recorder *recorder, pid_t pid)
{
	const struct process_recording *recording = recorder->recording;
	char children[LUA_CHILDREN_BYTES];

	if (lua_children_find(pid, recording->pids, recording->pid_count,
	                      children))
		tell("process %d has children with LuaJIT, which are left "
		     "alone: -p %s profiles them",
		     (int)pid, children);
}

static bool start(const struct recorder *recorder,
                  const struct recorded *recorded)
{
	const struct process_recording *recording = recorder->recording;
	char text[BLOCK_ERROR_BYTES];
	struct settings settings;
	char kind;

	write_settings(recording, recorded, &settings);
	if (!attach_send_settings(&recorded->attachment, settings.text,
	                          recorded->dump))
		return false;
	kind = attach_receive(&recorded->attachment, START_PATIENCE_MS, text,
	                      sizeof(text));
	if (kind == ATTACH_STARTED) {
		tell("process %d: %s; %s", (int)recorded->pid, text,
		     recording->seconds > 0 ? "Ctrl-C ends it earlier"
		                            : "Ctrl-C ends it");
		tell_of_children(recorder, recorded->pid);
		return true;
	}
	tell("process %d is not profiled: %s", (int)recorded->pid,
	     kind == ATTACH_REFUSED      ? text
	     : has_ended(recorded, 1000) ? "it has ended"
	                                 : "the agent does not answer");
	return false;
}

/* With the agents in the processes, which perf sees then, and nothing sampled yet. */
static void start_perf(struct recorder *recorder)
{
	char ids[COUNT_OF("4194304,") * 64] = "";
	char library[PROCESS_PATH_BYTES];
	struct process process = {0};
	size_t used = 0;

	for (size_t i = 0; i < recorder->count; i++) {
		const struct recorded *recorded = &recorder->processes[i];

		if (recorded->attachment.socket < 0)
			continue;
		if (used == 0 && !process_read(&process, recorded->pid))
			return;
		used += (size_t)snprintf(ids + used, sizeof(ids) - used, "%s%d",
		                         used > 0 ? "," : "",
		                         (int)recorded->pid);
	}
	if (used == 0)
		return;
	process_path(&process, recorder->recording->library, library);
	perf_run_start(&recorder->perf, ids, library);
}

/* How many have been started. */
static size_t start_all(struct recorder *recorder)
{
	size_t attached_count = 0, started_count = 0;

	for (size_t i = 0; i < recorder->count; i++)
		attached_count +=
			attach(recorder->recording, &recorder->processes[i]);
	if (attached_count == 0)
		return 0;
	if (recorder->recording->has_perf)
		start_perf(recorder);
	for (size_t i = 0; i < recorder->count; i++) {
		struct recorded *recorded = &recorder->processes[i];

		if (recorded->attachment.socket < 0)
			continue;
		recorded->is_started = start(recorder, recorded);
		started_count += recorded->is_started;
	}
	return started_count;
}

/* ---- the end --------------------------------------------------------------------- */

static bool is_agent_gone(const struct recorded *recorded)
{
	struct pollfd ready = {.fd = recorded->attachment.socket, .events = 0};

	return poll(&ready, 1, 0) > 0;
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* In the order of the processes, behind the signals: their ends, or their agents'.
 * Returns how many may still come to an end. */
static size_t list_ends(const struct recorder *recorder, struct pollfd *ready)
{
	size_t running_count = 0;

	ready[0] = (struct pollfd){.fd = recorder->signals, .events = POLLIN};
	for (size_t i = 0; i < recorder->count; i++) {
		const struct recorded *recorded = &recorder->processes[i];
		bool runs = recorded->is_started && !recorded->is_over;

		/* poll(2) skips what is negative. */
		ready[1 + 2 * i] = (struct pollfd){
			.fd = runs ? recorded->attachment.pid_fd : -1,
			.events = POLLIN};
		ready[2 + 2 * i] = (struct pollfd){
			.fd = runs ? recorded->attachment.socket : -1};
		running_count += runs;
	}
	return running_count;
}

static void note_ends(struct recorder *recorder, const struct pollfd *ready)
{
	for (size_t i = 0; i < recorder->count; i++)
		if (ready[1 + 2 * i].revents || ready[2 + 2 * i].revents)
			recorder->processes[i].is_over = true;
}

/* A signal, the time, or the end of the last process. */
static void wait_for_end(struct recorder *recorder)
{
	double seconds = recorder->recording->seconds;
	double end = seconds > 0 ? seconds_now() + seconds : INFINITY;
	size_t entry_count = 1 + 2 * recorder->count;
	struct pollfd *ready = calloc(entry_count, sizeof(*ready));

	while (ready && list_ends(recorder, ready) > 0) {
		double left_ms = ceil((end - seconds_now()) * 1000);

		if (left_ms <= 0)
			break;
		/* poll(2) counts in int. */
		if (poll(ready, entry_count,
		         isinf(left_ms)      ? -1
		         : left_ms < INT_MAX ? (int)left_ms
		                             : INT_MAX) < 0 &&
		    errno != EINTR)
			break;
		if (ready[0].revents)
			break;
		note_ends(recorder, ready);
	}
	free(ready);
}

/* It does not answer. Is its dump whole, as far as it can be? */
static bool explain(const struct recorded *recorded)
{
	bool is_gone = is_agent_gone(recorded);

	if (has_ended(recorded, is_gone ? 2000 : 0))
		return true;
	if (is_gone) {
		tell("process %d has executed another program, and the profile "
		     "ended with the first one",
		     (int)recorded->pid);
		return true;
	}
	tell("process %d does not answer, and completes the dump when it goes "
	     "on",
	     (int)recorded->pid);
	return false;
}

static bool await_end(const struct recorder *recorder,
                      const struct recorded *recorded)
{
	char text[BLOCK_ERROR_BYTES];
	char kind = attach_receive(&recorded->attachment, END_PATIENCE_MS, text,
	                           sizeof(text));
	bool is_good = kind == ATTACH_ENDED;

	if (kind == '\0') {
		is_good = explain(recorded);
		show_dump(recorded, "");
		if (is_agent_gone(recorded))
			tell_of_end(recorded);
		return is_good;
	}
	if (!is_good)
		tell("process %d: %s", (int)recorded->pid, text);
	show_dump(recorded, is_good ? text : "");
	if (is_good && atol(text) == 0) {
		tell("process %d was idle: no samples", (int)recorded->pid);
		tell_of_children(recorder, recorded->pid);
	}
	return is_good;
}

/* Their samples end at one time, not one behind the other. */
static size_t stop_all(struct recorder *recorder)
{
	size_t good_count = 0;

	for (size_t i = 0; i < recorder->count; i++)
		if (recorder->processes[i].is_started)
			send(recorder->processes[i].attachment.socket, "", 1,
			     MSG_NOSIGNAL);
	for (size_t i = 0; i < recorder->count; i++)
		if (recorder->processes[i].is_started)
			good_count +=
				await_end(recorder, &recorder->processes[i]);
	return good_count;
}

static void clean_up(struct recorder *recorder)
{
	for (size_t i = 0; i < recorder->count; i++) {
		struct recorded *recorded = &recorder->processes[i];

		attach_close(&recorded->attachment);
		dump_service_end(&recorded->dumps);
		if (recorded->is_new && !recorded->is_started)
			unlink(recorded->path);
		if (recorded->dump >= 0)
			close(recorded->dump);
	}
	free(recorder->processes);
	close(recorder->signals);
}

static bool open_recorder(struct recorder *recorder)
{
	const struct process_recording *recording = recorder->recording;

	recorder->processes =
		calloc(recording->pid_count, sizeof(*recorder->processes));
	recorder->signals = open_signals();
	if (!recorder->processes || recorder->signals < 0) {
		tell("%s", strerror(errno));
		return false;
	}
	recorder->count = recording->pid_count;
	for (size_t i = 0; i < recorder->count; i++)
		recorder->processes[i] = (struct recorded){
			.pid = recording->pids[i],
			.dump = -1,
			.dumps = {.socket = -1},
			.attachment = {.pid_fd = -1, .socket = -1},
		};
	return true;
}

int record_processes(const struct process_recording *recording)
{
	struct recorder recorder = {.recording = recording};
	size_t good_count = 0;

	/* perf may be gone when it is written to. */
	signal(SIGPIPE, SIG_IGN);
	if (!open_recorder(&recorder))
		return STATUS_BAD;
	if (start_all(&recorder) > 0) {
		wait_for_end(&recorder);
		good_count = stop_all(&recorder);
		perf_run_end(&recorder.perf, recording->path);
	} else {
		perf_run_cancel(&recorder.perf);
	}
	clean_up(&recorder);
	return good_count == recording->pid_count ? STATUS_GOOD : STATUS_BAD;
}
