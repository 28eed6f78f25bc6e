// SPDX-License-Identifier: MIT
/*
 * Fatal signals: a process that ends by SIGINT, SIGTERM or SIGHUP completes its
 * dumps first. The handler does no more than to wake a thread.
 */
#ifndef LIB_FATAL_SIGNALS_H
#define LIB_FATAL_SIGNALS_H

/* Those whose action is the default one are ours from now on; the program's own
 * handlers, and those that it sets later, are left alone: a program that has them
 * ends by itself. In children of fork(2), too, if a profile runs there. */
void fatal_signals_watch(void);

/* Back to the default action. */
void fatal_signals_give_back(void);

#endif
