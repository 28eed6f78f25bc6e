// SPDX-License-Identifier: MIT
/*
 * Sample signal: the action for the signal that sample clocks send. It is ours
 * while any session needs it, and the host's again afterwards. Not for the
 * signal handler.
 */
#ifndef LIB_SAMPLE_SIGNAL_H
#define LIB_SAMPLE_SIGNAL_H

#include <stdbool.h>

#include "error.h"

/* "PROF", "URG", …: of the signals that can be chosen. */
const char *sample_signal_name(int number);

/* Sets the signal of the clocks: SIGURG, unless the process uses it or no clock can
 * send it; then SIGPROF. A signal that is under way when the process executes another
 * program reaches that one, and SIGURG is ignored by default. spares_caller as
 * below. */
void sample_signal_choose(bool spares_caller);

/* -1 if another profiler of the process uses the signal or its timer, or if the
 * signal is blocked on this thread, unless that is not to be sampled. */
int sample_signal_check(bool spares_caller, struct error *error);

/* Counted: installs the sampler's handler, but never over one of somebody else; each
 * needs a release. */
int sample_signal_take(struct error *error);
/* The last one puts back what was there before. The clocks have been closed. */
void sample_signal_release(void);

/* Has nobody put another action over it? While it is taken. */
bool sample_signal_is_ours(void);

/* What the clocks have sent and nobody has got yet, on any thread. */
void sample_signal_discard_pending(void);

/* In the child: as if all had released it. */
void sample_signal_after_fork(void);

#endif
