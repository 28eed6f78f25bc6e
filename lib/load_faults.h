// SPDX-License-Identifier: MIT
/*
 * Between load_sig.c (the loads and the handler of their faults) and
 * load_faults.c (installing it).
 */
#ifndef LIB_LOAD_FAULTS_H
#define LIB_LOAD_FAULTS_H

#include <signal.h>
#include <stdbool.h>

/* The handler of SIGSEGV and SIGBUS. Async-signal-safe. */
void load_handle_fault(int signal, siginfo_t *info, void *context);

/* Is our handler the one of this signal? Async-signal-safe. */
bool load_is_caught(int signal);

/* The host's own actions: written before our handler is installed, read by
 * it. */
extern struct sigaction load_previous_segv, load_previous_bus;

#endif
