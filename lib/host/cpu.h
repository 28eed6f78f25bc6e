// SPDX-License-Identifier: MIT
/*
 * The CPU that this is built for. Each has a header, an unwind_*_sig.c and a
 * ../vm/vm_frame_*_sig.c; nothing else may depend on it.
 */
#ifndef HOST_CPU_H
#define HOST_CPU_H

#if defined(__x86_64__)
#include "cpu_x86_64.h"
#elif defined(__aarch64__)
#include "cpu_aarch64.h"
#else
#error "no unwinder is written for this CPU"
#endif

#endif
