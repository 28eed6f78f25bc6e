// SPDX-License-Identifier: MIT
/*
 * Agent: what `luajit-sysprof record -p` loads into a process. It has a thread of
 * its own there, which loads the profiler, starts it, and ends it when it is told
 * to or when the recorder is gone. Linked to libc alone, as the process may not
 * have LuaJIT's functions where a library finds them.
 *
 * No thread of the process ever runs code of this file. All signals but those of
 * faults are blocked on the agent's thread, and on those that it makes.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach_block.h"
#include "rotation_files.h"

#define EXPORT __attribute__((visibility("default")))

/* How long the recorder may take from loading the agent to its first message. */
#define PATIENCE_MS 30000
#define STEP_MS     20
/* And to make a file. */
#define FILE_PATIENCE_MS 1000

#define OBJECTS_MAX 1024

/* Hosts close descriptors that they do not know. */
struct agent_socket {
	int fd;
	ino_t inode;
};

struct agent {
	struct agent_socket recorder;
	char settings[ATTACH_MESSAGE_BYTES];
	int dump; /* descriptor, -1: none; of a rotation, that of a socket */
	struct agent_socket dumps; /* that one */
	struct dump_request request;
	struct rotation_files files; /* of a rotation */
	/* Of the profiler. */
	int (*attach)(const char *settings, int dump,
	              const struct rotation_files *files, char *text,
	              size_t bytes);
	int (*detach)(char *text, size_t bytes);
};

/* ---- LuaJIT ----------------------------------------------------------------- */

struct objects {
	char *names[OBJECTS_MAX];
	size_t count;
};

static int note_object(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct objects *objects = data;

	(void)bytes;
	if (info->dlpi_name[0] && objects->count < OBJECTS_MAX)
		objects->names[objects->count++] = strdup(info->dlpi_name);
	return 0;
}

/* Does the object itself, and not one that it needs, hold LuaJIT? */
static bool holds_luajit(const char *name)
{
	void *object = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
	void *function = object ? dlsym(object, "luaJIT_setmode") : NULL;
	struct link_map *map;
	Dl_info info;
	bool holds = function && dladdr(function, &info) &&
	             dlinfo(object, RTLD_DI_LINKMAP, &map) == 0 &&
	             strcmp(map->l_name, info.dli_fname) == 0;

	if (object)
		dlclose(object);
	return holds;
}

/* The loader's lock must not be held while an object is opened: names first. */
static bool make_luajit_global(void)
{
	struct objects *objects = calloc(1, sizeof(*objects));
	bool found = false;

	if (!objects)
		return false;
	dl_iterate_phdr(note_object, objects);
	for (size_t i = 0; i < objects->count; i++) {
		const char *name = objects->names[i];

		if (!found && name && holds_luajit(name))
			found = dlopen(name, RTLD_LAZY | RTLD_NOLOAD |
			                             RTLD_GLOBAL) != NULL;
		free(objects->names[i]);
	}
	free(objects);
	return found;
}

/* The profiler takes its lua_* from the global scope: all of one LuaJIT. */
static bool find_luajit(char *text, size_t bytes)
{
	void *setmode = dlsym(RTLD_DEFAULT, "luaJIT_setmode"), *call;
	Dl_info of_setmode, of_call;

	if (!setmode && make_luajit_global())
		setmode = dlsym(RTLD_DEFAULT, "luaJIT_setmode");
	if (!setmode) {
		snprintf(text, bytes,
		         "no LuaJIT in it has functions that can be found by "
		         "name");
		return false;
	}
	call = dlsym(RTLD_DEFAULT, "lua_cpcall");
	if (call && dladdr(setmode, &of_setmode) && dladdr(call, &of_call) &&
	    of_setmode.dli_fbase == of_call.dli_fbase)
		return true;
	snprintf(text, bytes,
	         "another Lua has taken the names of LuaJIT's functions");
	return false;
}

/* ---- the profiler ----------------------------------------------------------- */

/* The value of a setting, up to the end of its line; NULL: it is not there. */
static char *copy_setting(const char *settings, const char *name)
{
	size_t length = strlen(name);

	for (const char *line = settings; line && *line;) {
		const char *end = strchrnul(line, '\n');

		if (strncmp(line, name, length) == 0 && line[length] == '=')
			return strndup(line + length + 1,
			               (size_t)(end - line) - length - 1);
		line = *end ? end + 1 : NULL;
	}
	return NULL;
}

static bool load_profiler(struct agent *agent, char *text, size_t bytes)
{
	char *path = copy_setting(agent->settings, "LUAJIT_SYSPROF_LIBRARY");
	void *library = dlopen(path ? path : "", RTLD_NOW);

	free(path);
	if (library) {
		*(void **)&agent->attach =
			dlsym(library, "luaM_sysprof_attach");
		*(void **)&agent->detach =
			dlsym(library, "luaM_sysprof_detach");
	}
	if (library && agent->attach && agent->detach)
		return true;
	snprintf(text, bytes, "the profiler cannot be loaded: %s",
	         library ? "it is another version" : dlerror());
	return false;
}

/* ---- the socket ------------------------------------------------------------- */

static void take_socket(struct agent_socket *socket, int fd)
{
	struct stat status;

	socket->fd = fd;
	socket->inode = fstat(fd, &status) == 0 ? status.st_ino : 0;
}

static bool is_ours(const struct agent_socket *socket)
{
	struct stat status;

	return fstat(socket->fd, &status) == 0 &&
	       status.st_ino == socket->inode && S_ISSOCK(status.st_mode);
}

static void close_socket(const struct agent_socket *socket)
{
	if (is_ours(socket))
		close(socket->fd);
}

static void answer(const struct agent *agent, char kind, const char *text)
{
	char message[BLOCK_ERROR_BYTES + 2];
	int length = snprintf(message, sizeof(message), "%c%.511s", kind, text);

	if (is_ours(&agent->recorder))
		send(agent->recorder.fd, message, (size_t)length, MSG_NOSIGNAL);
}

/* Length of the message, and the descriptor that came with it, -1: none. */
static ssize_t receive_with_fd(int socket, void *text, size_t bytes, int *fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec contents = {text, bytes};
	struct msghdr message = {
		.msg_iov = &contents,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *header =
		length > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	*fd = -1;
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(header), sizeof(*fd));
	return length;
}

/* The first message. False: none has come, or it is not whole. */
static bool receive_settings(struct agent *agent)
{
	int fd;
	ssize_t length = receive_with_fd(agent->recorder.fd, agent->settings,
	                                 sizeof(agent->settings) - 1, &fd);

	if (fd < 0)
		return false;
	agent->settings[length] = '\0';
	/* 0 stands for none. */
	agent->dump = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	close(fd);
	return agent->dump > 0;
}

static bool wait_for_settings(struct agent *agent,
                              const struct attach_block *block)
{
	struct pollfd ready = {.fd = agent->recorder.fd, .events = POLLIN};

	for (int time_ms = 0; time_ms < PATIENCE_MS && !block->abandoned;
	     time_ms += STEP_MS)
		if (poll(&ready, 1, STEP_MS) > 0)
			return receive_settings(agent);
	return false;
}

/* Until the recorder says so, or has ended. */
static void wait_for_end(const struct agent *agent)
{
	char message;

	while (recv(agent->recorder.fd, &message, 1, 0) < 0 && errno == EINTR)
		;
}

/* ---- dumps of a rotation ---------------------------------------------------- */

static void remove_file(void *context, const char *path, dev_t device,
                        ino_t inode)
{
	struct agent *agent = context;
	struct dump_request *request = &agent->request;

	request->serial++;
	request->device = device;
	request->inode = inode;
	snprintf(request->path, sizeof(request->path), "%s", path);
	if (is_ours(&agent->dumps))
		send(agent->dumps.fd, request, sizeof(*request),
		     MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The answer to an earlier request, which was given up. */
static void drop_late(struct agent *agent, const struct dump_answer *answer,
                      int fd)
{
	struct stat status;

	if (fd < 0)
		return;
	if (fstat(fd, &status) == 0)
		remove_file(agent, answer->request.path, status.st_dev,
		            status.st_ino);
	close(fd);
}

static int await_file(struct agent *agent, uint64_t serial)
{
	struct pollfd ready = {.fd = agent->dumps.fd, .events = POLLIN};
	struct dump_answer answer;

	while (poll(&ready, 1, FILE_PATIENCE_MS) > 0) {
		int fd;

		if (receive_with_fd(agent->dumps.fd, &answer, sizeof(answer),
		                    &fd) != sizeof(answer))
			return -EPIPE;
		if (answer.request.serial == serial)
			return fd >= 0 ? fd : -answer.code;
		drop_late(agent, &answer, fd);
	}
	return -ETIMEDOUT;
}

static int create_file(void *context, const char *path)
{
	struct agent *agent = context;
	struct dump_request *request = &agent->request;
	uint64_t serial = ++request->serial;

	request->device = request->inode = 0;
	snprintf(request->path, sizeof(request->path), "%s", path);
	if (!is_ours(&agent->dumps))
		return -EBADF;
	if (send(agent->dumps.fd, request, sizeof(*request),
	         MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return -errno;
	return await_file(agent, serial);
}

/* What came in place of a dump is the socket. */
static void prepare_rotation(struct agent *agent)
{
	char *rotate = copy_setting(agent->settings, "LUAJIT_SYSPROF_ROTATE");

	if (!rotate)
		return;
	free(rotate);
	take_socket(&agent->dumps, agent->dump);
	agent->dump = -1;
	agent->files = (struct rotation_files){
		.context = agent,
		.create = create_file,
		.remove = remove_file,
	};
}

/* ---- the thread ------------------------------------------------------------- */

static void give_up(struct attach_block *block, const char *what)
{
	snprintf(block->error, sizeof(block->error), "%s: %s", what,
	         strerror(errno));
	block->state = ATTACH_AGENT_FAILED;
	for (int time_ms = 0; time_ms < PATIENCE_MS && !block->abandoned;
	     time_ms += STEP_MS)
		usleep(STEP_MS * 1000);
}

/* Nobody uses the region any more when both threads that brought us have
 * ended. */
static void unmap_region(const struct attach_block *block)
{
	const volatile int32_t *first =
		(const volatile int32_t *)block->first_thread_id_address;

	pthread_join((pthread_t)block->thread, NULL);
	while (*first)
		usleep(1000);
	munmap((void *)block->region, block->region_bytes);
}

static bool open_sockets(struct agent *agent, int *other)
{
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return false;
	take_socket(&agent->recorder, sockets[0]);
	*other = sockets[1];
	return true;
}

static bool start(struct agent *agent, char *text, size_t bytes)
{
	bool rotates = agent->dump < 0;
	bool started =
		find_luajit(text, bytes) && load_profiler(agent, text, bytes) &&
		agent->attach(agent->settings, rotates ? 0 : agent->dump,
	                      rotates ? &agent->files : NULL, text, bytes) == 0;

	if (!rotates)
		close(agent->dump);
	return started;
}

/* False: another thread may be about to end the profile, and use the agent. */
static bool profile(struct agent *agent)
{
	char text[BLOCK_ERROR_BYTES] = "";
	bool ended;

	prepare_rotation(agent);
	if (!start(agent, text, sizeof(text))) {
		answer(agent, ATTACH_REFUSED, text);
		return true;
	}
	answer(agent, ATTACH_STARTED, text);
	wait_for_end(agent);
	text[0] = '\0';
	ended = agent->detach(text, sizeof(text)) == 0;
	answer(agent, ended ? ATTACH_ENDED : ATTACH_FAILED, text);
	return ended;
}

/* For the recorder: is there a message? Then the region has served. */
static bool meet_recorder(struct agent *agent, struct attach_block *block)
{
	bool met;
	int other;

	if (!open_sockets(agent, &other)) {
		give_up(block, "socketpair");
		return false;
	}
	block->socket = other;
	block->state = ATTACH_READY;
	met = wait_for_settings(agent, block);
	close(other);
	if (!met)
		close(agent->recorder.fd);
	return met;
}

static void *run(void *argument)
{
	struct attach_block *block = argument;
	struct agent *agent = calloc(1, sizeof(*agent));
	bool met = false, is_unused = true;

	pthread_setname_np(pthread_self(), "sysprof-agent");
	if (agent)
		met = meet_recorder(agent, block);
	else
		give_up(block, "memory");
	unmap_region(block);
	if (met) {
		is_unused = profile(agent);
		close_socket(&agent->recorder);
	}
	if (agent)
		close_socket(&agent->dumps);
	if (is_unused)
		free(agent);
	return NULL;
}

/* On the thread that has loaded us, which ends next. */
EXPORT void luajit_sysprof_attach(struct attach_block *block);
void luajit_sysprof_attach(struct attach_block *block)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int code;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	code = pthread_create(&thread, &attributes, run, block);
	pthread_attr_destroy(&attributes);
	if (code == 0)
		return;
	snprintf(block->error, sizeof(block->error), "no thread: %s",
	         strerror(code));
	pthread_detach((pthread_t)block->thread);
	block->state = ATTACH_NO_AGENT;
}
