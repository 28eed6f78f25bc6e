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

#define EXPORT __attribute__((visibility("default")))

/* How long the recorder may take from loading the agent to its first message. */
#define PATIENCE_MS 10000
#define STEP_MS     20

#define OBJECTS_MAX 1024

struct agent {
	int socket;
	ino_t inode; /* of it: hosts close descriptors that they do not know */
	char settings[ATTACH_MESSAGE_BYTES];
	int dump; /* descriptor, -1: none */
	/* Of the profiler. */
	int (*attach)(const char *settings, int dump, char *text, size_t bytes);
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

static bool is_our_socket(const struct agent *agent)
{
	struct stat status;

	return fstat(agent->socket, &status) == 0 &&
	       status.st_ino == agent->inode && S_ISSOCK(status.st_mode);
}

static void answer(const struct agent *agent, char kind, const char *text)
{
	char message[BLOCK_ERROR_BYTES + 2];
	int length = snprintf(message, sizeof(message), "%c%.511s", kind, text);

	if (is_our_socket(agent))
		send(agent->socket, message, (size_t)length, MSG_NOSIGNAL);
}

/* The first message. False: none has come, or it is not whole. */
static bool receive_settings(struct agent *agent)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec text = {agent->settings, sizeof(agent->settings) - 1};
	struct msghdr message = {
		.msg_iov = &text,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t length = recvmsg(agent->socket, &message, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int fd;

	if (length <= 0 || !header || header->cmsg_type != SCM_RIGHTS)
		return false;
	agent->settings[length] = '\0';
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	/* 0 stands for none. */
	agent->dump = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	close(fd);
	return agent->dump > 0;
}

static bool wait_for_settings(struct agent *agent,
                              const struct attach_block *block)
{
	struct pollfd ready = {.fd = agent->socket, .events = POLLIN};

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

	while (recv(agent->socket, &message, 1, 0) < 0 && errno == EINTR)
		;
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
	struct stat status;
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return false;
	agent->socket = sockets[0];
	*other = sockets[1];
	if (fstat(agent->socket, &status) == 0)
		agent->inode = status.st_ino;
	return true;
}

static bool start(struct agent *agent, char *text, size_t bytes)
{
	bool started =
		find_luajit(text, bytes) && load_profiler(agent, text, bytes) &&
		agent->attach(agent->settings, agent->dump, text, bytes) == 0;

	close(agent->dump);
	return started;
}

static void profile(struct agent *agent)
{
	char text[BLOCK_ERROR_BYTES] = "";
	char kind;

	if (!start(agent, text, sizeof(text))) {
		answer(agent, ATTACH_REFUSED, text);
		return;
	}
	answer(agent, ATTACH_STARTED, text);
	wait_for_end(agent);
	text[0] = '\0';
	kind = agent->detach(text, sizeof(text)) == 0 ? ATTACH_ENDED
	                                              : ATTACH_FAILED;
	answer(agent, kind, text);
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
		close(agent->socket);
	return met;
}

static void *run(void *argument)
{
	struct attach_block *block = argument;
	struct agent *agent = calloc(1, sizeof(*agent));
	bool met = false;

	pthread_setname_np(pthread_self(), "sysprof-agent");
	if (agent)
		met = meet_recorder(agent, block);
	else
		give_up(block, "memory");
	unmap_region(block);
	if (met) {
		profile(agent);
		if (is_our_socket(agent))
			close(agent->socket);
	}
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
