// SPDX-License-Identifier: MIT
/*
 * Sample clock, the part that the signal handler asks.
 */
#include "clock.h"

#include <poll.h>

bool sample_clock_sent(const struct sample_clock *clock, const siginfo_t *info)
{
	switch (clock->kind) {
	case SAMPLE_CLOCK_PERF:
	case SAMPLE_CLOCK_EVENT:
		return (info->si_code == POLL_IN ||
		        info->si_code == POLL_HUP) &&
		       info->si_fd == clock->fd;
	case SAMPLE_CLOCK_THREAD_TIMER:
	case SAMPLE_CLOCK_WALL_TIMER:
		return info->si_code == SI_TIMER &&
		       info->si_value.sival_ptr == clock;
	case SAMPLE_CLOCK_PROCESS_TIMER:
		return info->si_code == SI_KERNEL;
	}
	return false;
}
