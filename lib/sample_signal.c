// SPDX-License-Identifier: MIT
/*
 * Sample signal: the action for the signal of the sample clocks. Ordinary code
 * on any thread; the handler itself is the sampler's.
 */
#include "sample_signal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "clock.h"
#include "lmisclib.h"
#include "own_thread.h"
#include "sampler_sig.h"

/* There is one action for the signal in a process. */
static struct {
	pthread_mutex_t lock;
	unsigned int user_count; /* the action is ours while it is not 0 */
	struct sigaction previous;
} action_of_process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_our_action(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) != 0 &&
	       action->sa_sigaction == sampler_handle_signal;
}

bool sample_signal_is_ours(void)
{
	struct sigaction current;

	return sigaction(sample_clock_signal(), NULL, &current) == 0 &&
	       is_our_action(&current);
}

static bool has_handler(const struct sigaction *action)
{
	return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

static int check_profiling_timer(struct error *error)
{
	struct itimerval timer;

	if (sample_clock_signal() != SIGPROF ||
	    getitimer(ITIMER_PROF, &timer) < 0 ||
	    (timer.it_value.tv_sec == 0 && timer.it_value.tv_usec == 0))
		return 0;
	return error_set(error, PROFILE_ERRUSE, EBUSY,
	                 "the timer ITIMER_PROF is running: another profiler "
	                 "is active in this process; stop it first, or choose "
	                 "another signal by the option signal");
}

/* sigabbrev_np() needs glibc 2.32, which
 * Debian 11 lacks. */
const char *sample_signal_name(int number)
{
	switch (number) {
	case SIGURG:
		return "URG";
	case SIGUSR1:
		return "USR1";
	case SIGUSR2:
		return "USR2";
	case SIGIO:
		return "IO";
	default:
		return "PROF";
	}
}

static bool is_blocked(int number)
{
	sigset_t blocked;

	return pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 &&
	       sigismember(&blocked, number) == 1;
}

static bool is_free(int number)
{
	struct sigaction action;

	return sigaction(number, NULL, &action) < 0 || !has_handler(&action) ||
	       is_our_action(&action);
}

void sample_signal_choose(bool spares_caller)
{
	sample_clock_set_signal(SIGURG);
	if (!is_free(SIGURG) || (!spares_caller && is_blocked(SIGURG)) ||
	    !sample_clock_can_send())
		sample_clock_set_signal(SIGPROF);
}

static int refuse_signal(int number, struct error *error)
{
	return error_set(error, PROFILE_ERRUSE, EBUSY,
	                 "SIG%s has a handler already: another profiler (such "
	                 "as jit.p) is active in this process; stop it first, "
	                 "or choose another signal by the option signal",
	                 sample_signal_name(number));
}

/* Another profiler of the process would take our signals, or we its. */
int sample_signal_check(bool spares_caller, struct error *error)
{
	int number = sample_clock_signal();

	if (!is_free(number))
		return refuse_signal(number, error);
	if (check_profiling_timer(error) < 0)
		return -1;
	if (!spares_caller && is_blocked(number))
		return error_set(error, PROFILE_ERRUSE, EINVAL,
		                 "SIG%s is blocked on this thread, so no "
		                 "sample would arrive; unblock it with "
		                 "pthread_sigmask()",
		                 sample_signal_name(number));
	return 0;
}

static int set_handler(struct error *error)
{
	struct sigaction action = {
		.sa_sigaction = sampler_handle_signal,
		.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK,
	};

	int number = sample_clock_signal();

	/* In the child of a fork nobody has asked before; and a host that had put
	 * its handler over ours may have put ours back later. */
	if (!is_free(number))
		return refuse_signal(number, error);
	if (sample_signal_is_ours())
		return 0;
	/* Other signals wait until a sample is taken: a handler that jumps out
	 * of ours would leave the sampler half-way. */
	own_thread_fill_mask(&action.sa_mask);
	if (sigaction(number, &action, &action_of_process.previous) < 0)
		return error_set(error, PROFILE_ERRIO, errno,
		                 "SIG%s cannot be handled: %s",
		                 sample_signal_name(number), strerror(errno));
	return 0;
}

int sample_signal_take(struct error *error)
{
	int result = 0;

	pthread_mutex_lock(&action_of_process.lock);
	if (action_of_process.user_count == 0)
		result = set_handler(error);
	if (result == 0)
		action_of_process.user_count++;
	pthread_mutex_unlock(&action_of_process.lock);
	return result;
}

/*
 * Puts the action back that was there before. The clock has been closed, but
 * what it sent may still be pending on any thread, and would kill a process
 * whose action is the default one: to ignore a signal discards those (POSIX).
 * A handler that somebody else has put over ours is left alone.
 */
static void restore_handler(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	if (!sample_signal_is_ours())
		return;
	sigaction(sample_clock_signal(), &ignore, NULL);
	sigaction(sample_clock_signal(), &action_of_process.previous, NULL);
}

void sample_signal_release(void)
{
	pthread_mutex_lock(&action_of_process.lock);
	if (--action_of_process.user_count == 0)
		restore_handler();
	pthread_mutex_unlock(&action_of_process.lock);
}

void sample_signal_discard_pending(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction current;

	if (sigaction(sample_clock_signal(), NULL, &current) < 0 ||
	    !is_our_action(&current))
		return;
	sigaction(sample_clock_signal(), &ignore, NULL);
	sigaction(sample_clock_signal(), &current, NULL);
}

void sample_signal_after_fork(void)
{
	pthread_mutex_init(&action_of_process.lock, NULL);
	if (action_of_process.user_count > 0)
		restore_handler();
	action_of_process.user_count = 0;
}
