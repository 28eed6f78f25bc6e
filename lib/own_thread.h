// SPDX-License-Identifier: MIT
/*
 * Threads of our own inside the host's process: they take none of its signals.
 * Not for signal handlers.
 */
#ifndef LIB_OWN_THREAD_H
#define LIB_OWN_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

#include "error.h"

/* All signals but those of faults: these cannot wait, our loads need them, and
 * the host's crash handler shall see those of its callbacks. */
void own_thread_fill_mask(sigset_t *mask);

/* Starts it with that mask. what ends the message "no thread for …". */
int own_thread_start(pthread_t *thread, void *(*run)(void *), void *argument,
                     const char *what, struct error *error);

uint64_t clock_ns(clockid_t clock);

#endif
