// SPDX-License-Identifier: MIT
/*
 * What a session is made of, for session.c (which there are, and who may start
 * and stop them), session_parts.c (what one is made of) and session_process.c
 * (what happens to all of them at once) only.
 */
#ifndef LIB_SESSION_STATE_H
#define LIB_SESSION_STATE_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "perf_share.h"
#include "session.h"
#include "vm_guard.h"
#include "vm/vm.h"
#include "writer.h"

enum session_state {
	SESSION_STARTING,
	SESSION_RUNNING,
	SESSION_STOPPING,
};

/* What the handler and the writer use stays in place from start to stop. */
struct session {
	struct session *next;
	enum session_state state; /* guarded by the lock, as next is */
	/* What names the VM: its registry. Nothing needs to be known of the
	 * VM's layout to ask for it. */
	const void *registry;
	struct session_options options;
	uint64_t serial; /* tells it from earlier ones */
	struct vm vm;
	struct fast_names fast_names;
	struct sampled_threads *threads;
	/* Guarded by the lock, since others look at it until it goes. NULL in
	 * mode D. The thread is told of for longer: a callback may run on it
	 * while it ends. */
	struct writer *writer;
	pthread_t writer_thread;
	bool has_writer_thread;
	struct writer_facts writer_facts; /* the last ones */
	struct perf_share perf;
	/* Of the dump: options.path is the caller's, and may be relative to a
	 * directory that the process leaves. */
	char path[PATH_MAX];
	bool is_child;   /* its path ends in the process id */
	bool has_signal; /* has taken the sample signal */
};

/* The profiles of the process. */
struct sessions {
	/* Guards all. Held for a few loads and stores only, so that fork(2) and
	 * the callbacks of the host never wait for I/O. */
	pthread_mutex_t lock;
	struct session *first;
	uint64_t serial;  /* of the last session */
	pid_t process_id; /* that started the last one */
	struct session_report last;
};

extern struct sessions sessions;

/* Ends the session when its VM is closed. */
extern const struct vm_guard_kind session_guard;

/* Takes it out of the list, and perf away from it. */
void session_forget(struct session *session);

/* Opens all that the options ask for, up to the signal; the clocks stand still.
 * 0, or -1 with the reason in *error; what is open then is still to be closed. */
int session_open_parts(struct session *session, lua_State *L,
                       struct error *error);

/* In the child of a fork: opens and starts the same as parent has, in a file of
 * its own. The VM is as it was checked in the parent. As above. */
int session_follow(struct session *session, const struct session *parent);

/* Stops the signals. Threads and writer stay. */
void session_stop_sampling(struct session *session);

/* Takes the writer away from those that look at the session, then waits for its
 * end. */
int session_close_writer(struct session *session, struct error *error);
/* The same where the profile does not come about. */
void session_discard_writer(struct session *session);

void session_free(struct session *session);

/* Once a process. */
void session_watch_forks(void);

#endif
