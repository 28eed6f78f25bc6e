// SPDX-License-Identifier: MIT
/* perf record beside profiled processes; see perf_run.h. */
#include "perf_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "probe.h"

#define PERF_DATA         "perf.data" /* as perf itself calls it */
#define FREQUENCY         "999"
#define START_PATIENCE_MS 10000
#define END_PATIENCE_MS   20000
#define STATUS_NO_PERF    127

/* ---- the probe --------------------------------------------------------------- */

static bool tell_no_probe(const char *reason)
{
	tell("perf: the probe cannot be set: %s; perf samples by itself, and "
	     "sees compiled Lua alone",
	     reason);
	return false;
}

/* Is there a probe to record? */
static bool settle_probe(struct perf_run *run, const char *library)
{
	unsigned long offset = probe_offset(library);
	int code;

	if (offset == 0)
		return tell_no_probe("the library has none: it was built "
		                     "without sys/sdt.h");
	if (!probe_list_answers())
		return tell_no_probe(PROBE_NO_ANSWER);
	if (probe_find(library, offset, run->probe))
		return true;
	if (probe_tracing_directory()[0] == '\0')
		return tell_no_probe(geteuid() == 0
		                             ? "tracefs is not mounted (mount "
		                               "-t tracefs nodev "
		                               "/sys/kernel/tracing)"
		                             : "only root may do that");
	code = probe_set(library, offset, run->probe);
	if (code != 0)
		return tell_no_probe(code == EACCES || code == EPERM
		                             ? "only root may do that"
		                             : strerror(code));
	run->probe_is_ours = true;
	return true;
}

/* ---- perf ---------------------------------------------------------------------- */

/* A group of its own: what the terminal sends to the command does not end it. */
static void become_perf(const struct perf_run *run, const int ends[2],
                        const char *const arguments[])
{
	sigset_t none;

	setpgid(0, 0);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(run->messages, STDOUT_FILENO);
	dup2(run->messages, STDERR_FILENO);
	fcntl(ends[0], F_SETFD, 0);
	fcntl(ends[1], F_SETFD, 0);
	/* It leaves them alone. */
	execvp(arguments[0], (char *const *)arguments);
	_exit(STATUS_NO_PERF);
}

static bool open_pipes(struct perf_run *run, int ends[2])
{
	int control[2], acks[2];

	if (pipe2(control, O_CLOEXEC) < 0)
		return false;
	if (pipe2(acks, O_CLOEXEC) < 0) {
		close(control[0]);
		close(control[1]);
		return false;
	}
	run->control = control[1];
	run->acks = acks[0];
	ends[0] = control[0];
	ends[1] = acks[1];
	return true;
}

bool perf_run_wants_jitdump(void)
{
	const char *kind = getenv("LUAJIT_SYSPROF_PERF");

	return kind && strcmp(kind, "jitdump") == 0;
}

static void start_perf(struct perf_run *run, const char *processes,
                       const char *event)
{
	char control[48];
	const char *arguments[24] = {"perf",    "record", "-o",
	                             PERF_DATA, "-k",     "mono"};
	size_t count = 6;
	int ends[2];

	run->messages = memfd_create("perf", MFD_CLOEXEC);
	if (run->messages < 0 || !open_pipes(run, ends)) {
		tell("perf: %s", strerror(errno));
		return;
	}
	snprintf(control, sizeof(control), "fd:%d,%d", ends[0], ends[1]);
	if (event) {
		arguments[count++] = "-e";
		arguments[count++] = event;
	} else {
		arguments[count++] = "-F";
		arguments[count++] = FREQUENCY;
	}
	arguments[count++] = "--call-graph";
	arguments[count++] =
		perf_run_wants_jitdump() && !event ? "dwarf" : "fp";
	arguments[count++] = "--control";
	arguments[count++] = control;
	arguments[count++] = "-p";
	arguments[count++] = processes;
	run->pid = fork();
	if (run->pid == 0)
		become_perf(run, ends, arguments);
	if (run->pid < 0) {
		tell("perf: %s", strerror(errno));
		run->pid = 0;
	}
	close(ends[0]);
	close(ends[1]);
}

/* perf answers when it samples. */
static bool is_ready(const struct perf_run *run)
{
	struct pollfd ready = {.fd = run->acks, .events = POLLIN};
	char answer[16];

	return write(run->control, "ping\n", 5) == 5 &&
	       poll(&ready, 1, START_PATIENCE_MS) > 0 &&
	       read(run->acks, answer, sizeof(answer)) > 0;
}

/* ---- the end --------------------------------------------------------------------- */

static bool waits_for(pid_t pid, int patience_ms, int *status)
{
	static const struct timespec pause = {.tv_nsec = 10000000};

	for (int time_ms = 0; time_ms <= patience_ms; time_ms += 10) {
		pid_t got = waitpid(pid, status, WNOHANG);

		if (got == pid)
			return true;
		if (got < 0 && errno != EINTR)
			return false;
		nanosleep(&pause, NULL);
	}
	return false;
}

/* Samples are written behind the end; what does not end then is ended. */
static int end_perf(struct perf_run *run)
{
	int status = -1;

	kill(run->pid, SIGINT);
	if (!waits_for(run->pid, END_PATIENCE_MS, &status)) {
		kill(run->pid, SIGKILL);
		waitpid(run->pid, &status, 0);
		status = -1;
	}
	run->pid = 0;
	return status;
}

/* The first line that perf has printed is what was wrong. */
static void tell_failure(const struct perf_run *run, int status)
{
	char text[400] = "";
	const char *line = text;
	ssize_t length = pread(run->messages, text, sizeof(text) - 1, 0);

	text[length > 0 ? length : 0] = '\0';
	while (*line == '\n' || strncmp(line, "Error:\n", 7) == 0)
		line = strchr(line, '\n') + 1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_NO_PERF)
		tell("perf: it is not installed (Debian: linux-perf)");
	else
		tell("perf: it does not record: %.*s", (int)strcspn(line, "\n"),
		     line);
}

static void clean_up(struct perf_run *run)
{
	if (run->control >= 0)
		close(run->control);
	if (run->acks >= 0)
		close(run->acks);
	if (run->messages >= 0)
		close(run->messages);
	run->control = run->acks = run->messages = -1;
	if (run->probe_is_ours)
		probe_remove(run->probe);
	run->probe_is_ours = false;
}

/* Of whose files perf takes no names unless it is told to. */
static bool has_foreign(const char *processes)
{
	struct stat status;
	char path[64];

	for (const char *p = processes; *p;
	     p += strcspn(p, ","), p += *p == ',') {
		snprintf(path, sizeof(path), "/proc/%d", atoi(p));
		if (stat(path, &status) == 0 && status.st_uid != 0 &&
		    status.st_uid != geteuid())
			return true;
	}
	return false;
}

void perf_run_start(struct perf_run *run, const char *processes,
                    const char *library)
{
	*run = (struct perf_run){.control = -1, .acks = -1, .messages = -1};
	run->has_foreign = has_foreign(processes);
	run->has_probe = settle_probe(run, library);
	start_perf(run, processes, run->has_probe ? run->probe : NULL);
	if (run->pid == 0 || is_ready(run))
		return;
	tell_failure(run, end_perf(run));
	clean_up(run);
}

void perf_run_end(struct perf_run *run, const char *dump)
{
	struct stat file;
	int status;

	if (run->pid == 0)
		return;
	status = end_perf(run);
	if (stat(PERF_DATA, &file) < 0 || file.st_size == 0) {
		tell_failure(run, status);
	} else {
		tell(PERF_DATA ": %lld bytes; perf report%s shows it",
		     (long long)file.st_size, run->has_foreign ? " -f" : "");
		if (!run->has_probe)
			tell("with all Lua stacks after: luajit-sysprof inject "
			     "-i " PERF_DATA " -d %s -o FILE",
			     dump);
	}
	clean_up(run);
}

void perf_run_cancel(struct perf_run *run)
{
	if (run->pid == 0)
		return;
	end_perf(run);
	unlink(PERF_DATA);
	clean_up(run);
}
