// SPDX-License-Identifier: MIT
/*
 * The probe luajit_sysprof:sample, hit with the frame-pointer register at a
 * chain of our own. The name of the function is what perf shows as the leaf of
 * every sample.
 */
#ifndef PERFMAP_BEACON_PROBE_SIG_H
#define PERFMAP_BEACON_PROBE_SIG_H

#include "perfmap/beacon_sig.h"

/* leaf may be NULL: a chain without frames. */
void luajit_sysprof_sample(const struct beacon_link *leaf);

#endif
