// SPDX-License-Identifier: MIT
/*
 * luajit-sysprof record: runs a command with the profiler in it, by environment
 * variables that the command's processes hand on.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands.h"
#include "perf_run.h"
#include "record_process.h"
#include "rotated_dumps.h"

#define AGENT   "libluajit-sysprof-agent.so"
#define PRELOAD "libluajit-sysprof-preload.so"
#define LIBRARY "libluajit-sysprof.so.0"

#define PIDS_MAX 64

#define STATUS_CANNOT_RUN 127 /* as of a shell */

struct record {
	char path[PATH_MAX]; /* of the dump, absolute */
	char preload[PATH_MAX], agent[PATH_MAX], library[PATH_MAX];
	char **command;
	bool rotates;
	struct dump_time start;
	pid_t pids[PIDS_MAX];
	size_t pid_count; /* 0: the command is run */
	double seconds;
	bool force;
	bool has_perf;      /* perf record runs, too */
	bool tunes_jitdump; /* what it says of jitdumps needs one */
};

static const struct option long_options[] = {
	{"output", required_argument, NULL, 'o'},
	{"mode", required_argument, NULL, 'm'},
	{"interval", required_argument, NULL, 'i'},
	{"clock", required_argument, NULL, 'c'},
	{"kernel", no_argument, NULL, 'k'},
	{"overhead", required_argument, NULL, 'O'},
	{"signal", required_argument, NULL, 's'},
	{"rotate", required_argument, NULL, 'r'},
	{"rotate-limit", required_argument, NULL, 'R'},
	{"no-follow", no_argument, NULL, 'n'},
	{"perf", optional_argument, NULL, 'P'},
	{"perf-dir", required_argument, NULL, 'D'},
	{"perf-unwind", required_argument, NULL, 'U'},
	{"pid", required_argument, NULL, 'p'},
	{"duration", required_argument, NULL, 'd'},
	{"force", no_argument, NULL, 'f'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static void print_help(void)
{
	fputs("Usage: luajit-sysprof record [OPTION]... [--] COMMAND "
	      "[ARGUMENT]...\n"
	      "       luajit-sysprof record [OPTION]... -p PID[,PID]...\n"
	      "Runs the command and profiles all LuaJIT in it and in its "
	      "children; or attaches\n"
	      "to processes that run, until Ctrl-C.\n"
	      "\n"
	      "  -o, --output=FILE    dump of the first process with LuaJIT; "
	      "others get FILE.PID\n"
	      "                       (sysprof.bin)\n"
	      "  -m, --mode=L|C       Lua stacks alone, or native ones too "
	      "(C)\n"
	      "  -i, --interval=MS    milliseconds between samples, or events "
	      "(10)\n"
	      "  -c, --clock=NAME     cpu, wall, or an event of perf (cpu)\n"
	      "      --kernel         the kernel's part of stacks, too\n"
	      "      --overhead=N     percent of the time that samples may "
	      "take "
	      "(5)\n"
	      "      --signal=NAME    SIGURG, SIGPROF, SIGUSR1, SIGUSR2, "
	      "SIGIO\n"
	      "      --rotate=WHEN    a new dump FILE.PID.TIME after WHEN: "
	      "60s, "
	      "10min, 1h, 64M\n"
	      "      --rotate-limit=SIZE\n"
	      "                       bytes of all dumps of a process; the "
	      "oldest go (1G)\n"
	      "  -p, --pid=PID        profile this process; of several, "
	      "PID,PID, each has a\n"
	      "                       dump FILE.PID\n"
	      "  -d, --duration=S     with -p: end after so many seconds\n"
	      "      --force          with -p: even if it has a seccomp "
	      "filter\n"
	      "      --no-follow      leave forked children alone\n"
	      "      --perf[=KIND]    let perf record run, too; names for it: "
	      "map, lines,\n"
	      "                       jitdump\n"
	      "      --perf-dir=DIRECTORY\n"
	      "                       of jitdumps (/tmp)\n"
	      "      --perf-unwind=HOW\n"
	      "                       rules in jitdumps for perf --call-graph "
	      "dwarf: mapped,\n"
	      "                       file, off (mapped)\n"
	      "      --help\n"
	      "\n"
	      "Exit status: that of the command; 127 if it cannot be run. "
	      "With -p 0 if all\n"
	      "dumps are whole, else 1.\n",
	      stdout);
}

/* ---- the libraries ------------------------------------------------------------ */

static bool find_library(const char *directory, const char *name, char *path)
{
	char plain[PATH_MAX];

	if (!realpath(directory, plain))
		return false;
	snprintf(path, PATH_MAX, "%.4000s/%s", plain, name);
	return access(path, R_OK) == 0;
}

/* Beside the program, as installed or as built; else where it was to be put. */
static bool find_in(struct record *record, const char *directory)
{
	return find_library(directory, PRELOAD, record->preload) &&
	       find_library(directory, AGENT, record->agent);
}

static bool find_libraries(struct record *record)
{
	char program[PATH_MAX] = "", directory[PATH_MAX + 40];
	ssize_t length = readlink("/proc/self/exe", program, PATH_MAX - 1);

	if (length > 0)
		dirname(program);
	snprintf(directory, sizeof(directory), "%s/../lib/.libs", program);
	if (find_library(directory, LIBRARY, record->library)) {
		snprintf(directory, sizeof(directory), "%s/../preload/.libs",
		         program);
		return find_in(record, directory);
	}
	snprintf(directory, sizeof(directory), "%s/../lib", program);
	if (find_library(directory, LIBRARY, record->library))
		return find_in(record, directory);
	return find_library(LIBRARY_DIRECTORY, LIBRARY, record->library) &&
	       find_in(record, LIBRARY_DIRECTORY);
}

/* ---- the environment ------------------------------------------------------------ */

static void prepend(const char *variable, const char *value)
{
	const char *before = getenv(variable);
	char *both;

	if (!before || !before[0]) {
		setenv(variable, value, 1);
		return;
	}
	if (asprintf(&both, "%s:%s", value, before) < 0)
		return;
	setenv(variable, both, 1);
	free(both);
}

/* For programs that hold their own copy of LuaJIT, as /usr/bin/luajit does: no
 * symbol of theirs can be stood before. */
static void set_lua_init(const struct record *record)
{
	const char *before = getenv("LUA_INIT");
	char *chunk;

	if (before)
		setenv("LUAJIT_SYSPROF_LUA_INIT", before, 1);
	if (asprintf(&chunk,
	             "local f = jit and package and package.loadlib and "
	             "package.loadlib([[%s]], 'luaM_sysprof_lua_init') "
	             "if f then f() end",
	             record->library) < 0)
		return;
	setenv("LUA_INIT", chunk, 1);
	free(chunk);
}

static void set_environment(const struct record *record)
{
	setenv("LUAJIT_SYSPROF_PATH", record->path, 1);
	setenv("LUAJIT_SYSPROF_LIBRARY", record->library, 1);
	prepend("LD_PRELOAD", record->preload);
	set_lua_init(record);
}

/* ---- dumps ------------------------------------------------------------------------ */

/* What an earlier run has left would pass for this one's. */
static void remove_old_dumps(const struct record *record)
{
	char pattern[PATH_MAX + 16];
	glob_t found;

	unlink(record->path);
	snprintf(pattern, sizeof(pattern), "%s.error", record->path);
	unlink(pattern);
	snprintf(pattern, sizeof(pattern), "%s.[1-9]*[0-9]", record->path);
	if (glob(pattern, 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		if (strspn(found.gl_pathv[i] + strlen(record->path) + 1,
		           "0123456789") ==
		    strlen(found.gl_pathv[i]) - strlen(record->path) - 1)
			unlink(found.gl_pathv[i]);
	globfree(&found);
}

/* Returns whether a profile was refused. */
static bool show_errors(const struct record *record)
{
	char path[PATH_MAX + 8], line[1024];
	bool refused = false;
	FILE *file;

	snprintf(path, sizeof(path), "%s.error", record->path);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		tell("not profiled: %s", line);
		refused = true;
	}
	fclose(file);
	return refused;
}

static void tell_no_dump(bool refused)
{
	if (!refused)
		tell("no LuaJIT was met: no dump (a static copy is met only in "
		     "programs that read LUA_INIT)");
}

/* Those that this run has left: earlier ones stay, too, for their names tell them
 * apart. */
static void show_rotated(const struct record *record, bool refused)
{
	struct rotated_dumps dumps;

	rotated_dumps_find(&dumps, record->path, 0, &record->start);
	if (dumps.count > 0)
		tell("%s.PID.TIME: %zu dumps, %lld bytes", record->path,
		     dumps.count, dumps.bytes);
	else
		tell_no_dump(refused);
}

static void show_dumps(const struct record *record)
{
	bool refused = show_errors(record);
	struct stat status;

	if (record->rotates)
		show_rotated(record, refused);
	else if (stat(record->path, &status) < 0)
		tell_no_dump(refused);
	else
		tell("%s: %lld bytes", record->path, (long long)status.st_size);
}

/* ---- the command -------------------------------------------------------------------- */

static volatile sig_atomic_t command_id;

/* A supervisor knows us alone. */
static void hand_on(int number)
{
	if (command_id > 0)
		kill(command_id, number);
}

/* Until the recorder lets it: perf has to be there first. */
static void become_command(const struct record *record, int gate)
{
	char byte;

	if (read(gate, &byte, 1) != 1)
		_exit(STATUS_CANNOT_RUN);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	set_environment(record);
	execvp(record->command[0], record->command);
	tell("%s: %s", record->command[0], strerror(errno));
	_exit(STATUS_CANNOT_RUN);
}

/* Starts it at the gate, as command_id. False with a message. */
static bool fork_command(const struct record *record, int *gate)
{
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) < 0) {
		tell("cannot make a pipe: %s", strerror(errno));
		return false;
	}
	child = fork();
	if (child == 0) {
		close(ends[1]);
		become_command(record, ends[0]);
	}
	close(ends[0]);
	*gate = ends[1];
	if (child < 0) {
		tell("cannot fork: %s", strerror(errno));
		close(*gate);
		return false;
	}
	command_id = child;
	return true;
}

static int run_command(const struct record *record)
{
	struct perf_run perf = {.pid = 0};
	int status, gate;
	char id[16];

	/* The terminal sends them to the command as well, which ends. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	if (!fork_command(record, &gate))
		return STATUS_BAD;
	signal(SIGTERM, hand_on);
	signal(SIGHUP, hand_on);
	/* Command or perf may be gone when they are written to. */
	signal(SIGPIPE, SIG_IGN);
	snprintf(id, sizeof(id), "%d", (int)command_id);
	if (record->has_perf)
		perf_run_start(&perf, id, record->library);
	if (write(gate, "", 1) != 1)
		tell("the command has ended before it was run");
	close(gate);
	while (waitpid(command_id, &status, 0) < 0 && errno == EINTR)
		;
	show_dumps(record);
	perf_run_end(&perf, record->path);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool make_absolute(const char *path, char absolute[PATH_MAX])
{
	char directory[PATH_MAX];

	if (path[0] == '/' || !getcwd(directory, sizeof(directory)))
		return snprintf(absolute, PATH_MAX, "%s", path) < PATH_MAX - 16;
	return snprintf(absolute, PATH_MAX, "%s/%s", directory, path) <
	       PATH_MAX - 16;
}

static bool parse_seconds(const char *argument, double *seconds)
{
	char *end;

	*seconds = strtod(argument, &end);
	if (end != argument && *end == '\0' && *seconds > 0 && *seconds <= 1e9)
		return true;
	tell("expected seconds from 0.001 to 1e9, got '%.100s' (see --help)",
	     argument);
	return false;
}

static bool is_given(const struct record *record, pid_t pid)
{
	for (size_t i = 0; i < record->pid_count; i++)
		if (record->pids[i] == pid)
			return true;
	return false;
}

/* "12" or "12,13". */
static bool parse_pids(char *argument, struct record *record)
{
	char *rest = NULL, *text = strtok_r(argument, ",", &rest);

	if (!text)
		return parse_pid(argument) != 0;
	for (; text; text = strtok_r(NULL, ",", &rest)) {
		int pid = parse_pid(text);

		if (pid == 0)
			return false;
		if (is_given(record, pid)) {
			tell("process %d is given twice", pid);
			return false;
		}
		if (record->pid_count == PIDS_MAX) {
			tell("%d processes at most", PIDS_MAX);
			return false;
		}
		record->pids[record->pid_count++] = pid;
	}
	return true;
}

/* Is it one thing that is to be profiled? */
static bool check_what(const struct record *record)
{
	bool attaches = record->pid_count > 0;

	if (attaches && record->command[0])
		tell("-p PID and a command exclude each other (see --help)");
	else if (!attaches && !record->command[0])
		tell("a command is missing, or -p PID (see --help)");
	else if (!attaches && (record->seconds > 0 || record->force))
		tell("--duration and --force belong to -p PID (see --help)");
	else if (record->tunes_jitdump && !perf_run_wants_jitdump())
		tell("--perf-dir and --perf-unwind need --perf=jitdump (see "
		     "--help)");
	else
		return true;
	return false;
}

static int attach_to_processes(const struct record *record)
{
	const struct process_recording recording = {
		.pids = record->pids,
		.pid_count = record->pid_count,
		.path = record->path,
		.agent = record->agent,
		.library = record->library,
		.seconds = record->seconds,
		.force = record->force,
		.rotates = record->rotates,
		.has_perf = record->has_perf,
	};

	return record_processes(&recording);
}

/* Values are looked at by the profiler, which knows what it accepts. */
static bool parse_options(struct record *record, int argc, char **argv)
{
	const char *output = "sysprof.bin";
	char directory[PATH_MAX];
	int letter;

	while ((letter = getopt_long(argc, argv, "+o:m:i:c:p:d:h", long_options,
	                             NULL)) != -1) {
		switch (letter) {
		case 'o':
			output = optarg;
			break;
		case 'm':
			setenv("LUAJIT_SYSPROF_MODE", optarg, 1);
			break;
		case 'i':
			setenv("LUAJIT_SYSPROF_INTERVAL", optarg, 1);
			break;
		case 'c':
			setenv("LUAJIT_SYSPROF_CLOCK", optarg, 1);
			break;
		case 'k':
			setenv("LUAJIT_SYSPROF_KERNEL", "1", 1);
			break;
		case 'O':
			setenv("LUAJIT_SYSPROF_OVERHEAD", optarg, 1);
			break;
		case 's':
			setenv("LUAJIT_SYSPROF_SIGNAL", optarg, 1);
			break;
		case 'r':
			setenv("LUAJIT_SYSPROF_ROTATE", optarg, 1);
			record->rotates = true;
			break;
		case 'R':
			setenv("LUAJIT_SYSPROF_ROTATE_LIMIT", optarg, 1);
			break;
		case 'n':
			setenv("LUAJIT_SYSPROF_FORK", "stop", 1);
			break;
		case 'P':
			setenv("LUAJIT_SYSPROF_PERF", optarg ? optarg : "1", 1);
			record->has_perf = true;
			break;
		case 'D':
			if (!make_absolute(optarg, directory)) {
				tell("%.100s...: the name is too long", optarg);
				return false;
			}
			setenv("LUAJIT_SYSPROF_PERF_DIR", directory, 1);
			record->tunes_jitdump = true;
			break;
		case 'U':
			setenv("LUAJIT_SYSPROF_PERF_UNWIND", optarg, 1);
			record->tunes_jitdump = true;
			break;
		case 'p':
			if (!parse_pids(optarg, record))
				return false;
			break;
		case 'd':
			if (!parse_seconds(optarg, &record->seconds))
				return false;
			break;
		case 'f':
			record->force = true;
			break;
		case 'h':
			print_help();
			exit(STATUS_GOOD);
		default:
			return false;
		}
	}
	record->command = argv + optind;
	if (!check_what(record))
		return false;
	if (make_absolute(output, record->path))
		return true;
	tell("%.100s...: the name is too long", output);
	return false;
}

int command_record(int argc, char **argv)
{
	static struct record record;

	if (!parse_options(&record, argc, argv))
		return STATUS_USAGE;
	if (!find_libraries(&record)) {
		tell("%s, %s and %s are not in %s; install luajit-sysprof",
		     LIBRARY, PRELOAD, AGENT, LIBRARY_DIRECTORY);
		return STATUS_BAD;
	}
	if (record.pid_count > 0)
		return attach_to_processes(&record);
	remove_old_dumps(&record);
	record.start = dump_time_now();
	return run_command(&record);
}
