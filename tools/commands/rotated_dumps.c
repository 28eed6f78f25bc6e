// SPDX-License-Identifier: MIT
/* Dumps of a rotation; see rotated_dumps.h. */
#include "rotated_dumps.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "attach_block.h"
#include "commands.h"

/* ---- those that there are ------------------------------------------------------ */

/* As lib/rotation.c spells it. */
struct dump_time dump_time_now(void)
{
	struct dump_time start;
	time_t now = time(NULL);
	struct tm utc;

	strftime(start.text, sizeof(start.text), "%Y%m%dT%H%M%S.000Z",
	         gmtime_r(&now, &utc));
	return start;
}

static void add_dump(struct rotated_dumps *dumps, const char *path,
                     const struct dump_time *since)
{
	size_t length = strlen(path), time_length = strlen(since->text);
	struct stat status;

	if (length < time_length ||
	    strcmp(path + length - time_length, since->text) < 0 ||
	    stat(path, &status) < 0)
		return;
	dumps->count++;
	dumps->bytes += status.st_size;
	snprintf(dumps->last, sizeof(dumps->last), "%s", path);
}

void rotated_dumps_find(struct rotated_dumps *dumps, const char *path,
                        pid_t pid, const struct dump_time *since)
{
	char pattern[PATH_MAX + 64], process[16];
	glob_t found;

	*dumps = (struct rotated_dumps){.count = 0};
	snprintf(process, sizeof(process), "%d", (int)pid);
	snprintf(pattern, sizeof(pattern), "%s.%s.*T*Z", path,
	         pid ? process : "[1-9]*");
	if (glob(pattern, 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		add_dump(dumps, found.gl_pathv[i], since);
	globfree(&found);
}

/* ---- the service ---------------------------------------------------------------- */

/* The process may ask for what it wants, and gets no other file than its own. It
 * says its id as it sees it. */
static bool name_dump(const struct dump_service *service, const char *asked,
                      char path[PATH_MAX])
{
	static const char form[] = "00000000T000000.000Z";
	size_t length = strlen(service->path);
	const char *when;

	if (strncmp(asked, service->path, length) != 0 || asked[length] != '.')
		return false;
	when = asked + length + 1 + strspn(asked + length + 1, "0123456789");
	if (*when++ != '.' || strlen(when) != strlen(form))
		return false;
	for (size_t i = 0; form[i]; i++)
		if (form[i] == '0' ? when[i] < '0' || when[i] > '9'
		                   : when[i] != form[i])
			return false;
	return snprintf(path, PATH_MAX, "%s.%d.%s", service->path,
	                (int)service->pid, when) < PATH_MAX;
}

static bool send_answer(const struct dump_service *service,
                        const struct dump_answer *answer, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
	                        .cmsg_level = SOL_SOCKET,
	                        .cmsg_type = SCM_RIGHTS}};
	struct iovec contents = {(void *)answer, sizeof(*answer)};
	struct msghdr message = {.msg_iov = &contents, .msg_iovlen = 1};

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	return sendmsg(service->socket, &message, MSG_NOSIGNAL) >= 0;
}

static void create(const struct dump_service *service,
                   const struct dump_request *request)
{
	struct dump_answer answer = {.request = *request, .code = EINVAL};
	char path[PATH_MAX];
	int fd = -1;

	if (name_dump(service, request->path, path)) {
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		answer.code = fd < 0 ? errno : 0;
	}
	/* One that nobody writes to would be no dump. */
	if (!send_answer(service, &answer, fd) && fd >= 0)
		unlink(path);
	if (fd >= 0)
		close(fd);
}

static void remove_dump(const struct dump_service *service,
                        const struct dump_request *request)
{
	char path[PATH_MAX];
	struct stat status;

	if (name_dump(service, request->path, path) &&
	    lstat(path, &status) == 0 && status.st_dev == request->device &&
	    status.st_ino == request->inode)
		unlink(path);
}

static void *serve(void *argument)
{
	const struct dump_service *service = argument;
	struct dump_request request;
	ssize_t got;

	while ((got = recv(service->socket, &request, sizeof(request), 0)) >
	               0 ||
	       (got < 0 && errno == EINTR)) {
		if (got != sizeof(request))
			continue;
		request.path[sizeof(request.path) - 1] = '\0';
		if (request.inode)
			remove_dump(service, &request);
		else
			create(service, &request);
	}
	return NULL;
}

int dump_service_start(struct dump_service *service, const char *path,
                       pid_t pid)
{
	int ends[2], code;

	*service =
		(struct dump_service){.socket = -1, .pid = pid, .path = path};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
		tell("cannot make sockets: %s", strerror(errno));
		return -1;
	}
	service->socket = ends[0];
	code = pthread_create(&service->thread, NULL, serve, service);
	if (code == 0)
		return ends[1];
	tell("cannot make a thread: %s", strerror(code));
	close(ends[0]);
	close(ends[1]);
	service->socket = -1;
	return -1;
}

void dump_service_end(struct dump_service *service)
{
	if (service->socket < 0)
		return;
	shutdown(service->socket, SHUT_RDWR);
	pthread_join(service->thread, NULL);
	close(service->socket);
	service->socket = -1;
}
