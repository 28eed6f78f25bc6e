// SPDX-License-Identifier: MIT
/* Getting the agent into a process, and talking with it; see attach.h. */
#include "attach.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach_block.h"
#include "commands.h"
#include "implant.h"
#include "refusal.h"

/* ---- from the start to the socket ------------------------------------------------ */

static bool refuse_start(pid_t pid, int code)
{
	if (code == EDEADLK)
		tell("process %d: no moment was found at which its only "
		     "thread is outside of the C library; try again",
		     (int)pid);
	else if (code == ENOTSUP)
		tell("process %d: the threads of its C library are laid out in "
		     "an unknown way",
		     (int)pid);
	else
		refuse_errno(pid, code);
	return false;
}

static bool refuse_agent(struct implant *implant, int32_t state)
{
	const struct attach_block *block = &implant->contents;
	pid_t pid = implant->target.pid;

	switch (state) {
	case ATTACH_NO_THREAD:
		tell("process %d: a thread cannot be made in it: %s", (int)pid,
		     block->code == ATTACH_TLS_TOO_BIG
		             ? "too many thread-local variables"
		             : strerror(block->code));
		implant_take_back(implant);
		break;
	case ATTACH_NO_AGENT:
		tell("process %d: the agent cannot be loaded: %.500s", (int)pid,
		     block->error);
		implant_take_back(implant);
		break;
	case ATTACH_AGENT_FAILED:
		tell("process %d: %.500s", (int)pid, block->error);
		implant_abandon(implant);
		break;
	default:
		tell("process %d does not load the agent: %s", (int)pid,
		     kill(pid, 0) < 0
		             ? "it has ended"
		             : "its dynamic loader is busy; it gives up when "
		               "it comes to it");
		implant_abandon(implant);
	}
	return false;
}

static bool connect_agent(struct implant *implant,
                          struct attachment *attachment)
{
	int32_t state = implant_wait(implant);

	if (state != ATTACH_READY)
		return refuse_agent(implant, state);
	attachment->socket = (int)syscall(SYS_pidfd_getfd, attachment->pid_fd,
	                                  implant->contents.socket, 0);
	if (attachment->socket >= 0)
		return true;
	tell("process %d: its socket cannot be taken over: %s (pidfd_getfd "
	     "needs Linux 5.6)",
	     (int)attachment->pid, strerror(errno));
	implant_abandon(implant);
	return false;
}

static bool open_process(struct implant *implant, pid_t pid, const char *agent,
                         bool force)
{
	int code;

	if (!check_state(pid, force))
		return false;
	code = target_open(&implant->target, pid);
	if (code != 0)
		return refuse_errno(pid, code);
	return check_file(pid, agent) && implant_look(implant);
}

static bool open_attachment(struct implant *implant,
                            struct attachment *attachment, const char *agent,
                            bool force)
{
	pid_t pid = attachment->pid;
	int code;

	if (!open_process(implant, pid, agent, force))
		return false;
	attachment->pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (attachment->pid_fd < 0)
		return refuse_start(pid, errno);
	code = implant_start(implant, agent);
	return code == 0 ? connect_agent(implant, attachment)
	                 : refuse_start(pid, code);
}

bool attach_open(struct attachment *attachment, pid_t pid, const char *agent,
                 bool force)
{
	struct implant *implant =
		mmap(NULL, sizeof(*implant), PROT_READ | PROT_WRITE,
	             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool done;

	*attachment =
		(struct attachment){.pid = pid, .pid_fd = -1, .socket = -1};
	if (implant == MAP_FAILED)
		return refuse_start(pid, ENOMEM);
	implant->target.memory = -1;
	done = open_attachment(implant, attachment, agent, force);
	target_close(&implant->target);
	munmap(implant, sizeof(*implant));
	if (!done)
		attach_close(attachment);
	return done;
}

void attach_close(struct attachment *attachment)
{
	if (attachment->pid_fd >= 0)
		close(attachment->pid_fd);
	if (attachment->socket >= 0)
		close(attachment->socket);
	attachment->pid_fd = attachment->socket = -1;
}

/* ---- messages --------------------------------------------------------------------- */

bool attach_send_settings(const struct attachment *attachment,
                          const char *settings, int dump)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
	                        .cmsg_level = SOL_SOCKET,
	                        .cmsg_type = SCM_RIGHTS}};
	struct iovec text = {(void *)settings, strlen(settings)};
	struct msghdr message = {
		.msg_iov = &text,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	memcpy(CMSG_DATA(&control.header), &dump, sizeof(dump));
	if (strlen(settings) < ATTACH_MESSAGE_BYTES &&
	    sendmsg(attachment->socket, &message, MSG_NOSIGNAL) >= 0)
		return true;
	tell("process %d: the agent is gone: %s", (int)attachment->pid,
	     strerror(errno));
	return false;
}

char attach_receive(const struct attachment *attachment, int patience_ms,
                    char *text, size_t bytes)
{
	struct pollfd ready[] = {
		{.fd = attachment->socket, .events = POLLIN},
		{.fd = attachment->pid_fd, .events = POLLIN},
	};
	char message[BLOCK_ERROR_BYTES + 2];
	ssize_t length;

	text[0] = '\0';
	if (poll(ready, 2, patience_ms) <= 0 || !ready[0].revents)
		return '\0';
	length = recv(attachment->socket, message, sizeof(message) - 1,
	              MSG_DONTWAIT);
	if (length <= 0)
		return '\0';
	message[length] = '\0';
	snprintf(text, bytes, "%s", message + 1);
	return message[0];
}
