// SPDX-License-Identifier: MIT
/*
 * A host that attach.sh attaches to. Its first argument says what it does:
 *
 *   CALL        blocks for three seconds in this system call, and prints what it
 *               returned
 *   memory      allocates and frees on its only thread, through malloc(3)
 *   libraries   loads and unloads a library on its only thread
 *   threads     a VM and an allocator on each of four threads, and short-lived ones
 *   traced      is traced by its parent
 *   blocking    blocks the signal of the samples on its only thread
 *   filtered    has a seccomp filter, which allows everything
 *   vfork       has a thread that cannot be stopped, for three seconds
 *
 * The last seven go on until there is a file named "stop", check their own results
 * meanwhile, and print "ok".
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#define BLOCKED_SECONDS 3
#define THREADS         4
#define BLOCKS          64

static void fail(const char *what)
{
	fprintf(stderr, "attach_host: %s\n", what);
	exit(1);
}

static bool is_over(void)
{
	return access("stop", F_OK) == 0;
}

/* ---- blocked in a system call ------------------------------------------------- */

static const struct timespec long_time = {.tv_sec = BLOCKED_SECONDS};

static long in_nanosleep(void)
{
	return nanosleep(&long_time, NULL);
}

static long in_clock_nanosleep(void)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += BLOCKED_SECONDS;
	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static long in_poll(void)
{
	return poll(NULL, 0, BLOCKED_SECONDS * 1000);
}

static long in_ppoll(void)
{
	sigset_t none;

	sigemptyset(&none);
	return ppoll(NULL, 0, &long_time, &none);
}

static long in_select(void)
{
	struct timeval time = {.tv_sec = BLOCKED_SECONDS};

	return select(0, NULL, NULL, NULL, &time);
}

static long in_epoll_wait(void)
{
	struct epoll_event event;

	return epoll_wait(epoll_create1(0), &event, 1, BLOCKED_SECONDS * 1000);
}

static long in_epoll_pwait(void)
{
	struct epoll_event event;
	sigset_t none;

	sigemptyset(&none);
	return epoll_pwait(epoll_create1(0), &event, 1, BLOCKED_SECONDS * 1000,
	                   &none);
}

static long in_sigtimedwait(void)
{
	sigset_t urgent;

	sigemptyset(&urgent);
	sigaddset(&urgent, SIGUSR2);
	return sigtimedwait(&urgent, NULL, &long_time);
}

static long in_futex(void)
{
	static int word;

	return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &long_time, NULL, 0);
}

static long in_read(void)
{
	int ends[2];
	char byte;

	if (pipe(ends) < 0)
		fail("pipe");
	if (fork() == 0) {
		sleep(BLOCKED_SECONDS);
		if (write(ends[1], "x", 1) != 1)
			_exit(1);
		_exit(0);
	}
	return read(ends[0], &byte, 1);
}

static long in_recv(void)
{
	struct timeval time = {.tv_sec = BLOCKED_SECONDS};
	int ends[2];
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
		fail("socketpair");
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
	return recv(ends[0], &byte, 1, 0);
}

static const struct {
	const char *name;
	long (*call)(void);
} calls[] = {
	{"nanosleep", in_nanosleep},
	{"clock_nanosleep", in_clock_nanosleep},
	{"poll", in_poll},
	{"ppoll", in_ppoll},
	{"select", in_select},
	{"epoll_wait", in_epoll_wait},
	{"epoll_pwait", in_epoll_pwait},
	{"sigtimedwait", in_sigtimedwait},
	{"futex", in_futex},
	{"read", in_read},
	{"recv", in_recv},
};

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void block_in(long (*call)(void))
{
	double start = seconds(), late;
	long result;

	errno = 0;
	result = call();
	late = seconds() - start - BLOCKED_SECONDS;
	printf("%ld %s %s\n", result, errno ? strerror(errno) : "-",
	       late < -0.05 ? "early"
	       : late > 0.8 ? "late"
	                    : "in time");
}

/* ---- busy ---------------------------------------------------------------------- */

struct blocks {
	unsigned char *bytes[BLOCKS];
	size_t count[BLOCKS];
	unsigned int random;
};

/* Whoever writes to a block of another one is found out. */
static void allocate(struct blocks *blocks, unsigned char mark)
{
	for (int i = 0; i < 2000; i++) {
		unsigned int n = rand_r(&blocks->random);
		size_t place = n % BLOCKS;

		for (size_t at = 0; at < blocks->count[place]; at++)
			if (blocks->bytes[place][at] != mark)
				fail("a block has been overwritten");
		free(blocks->bytes[place]);
		blocks->count[place] = n % 3000 + 1;
		blocks->bytes[place] = malloc(blocks->count[place]);
		if (!blocks->bytes[place])
			fail("no memory");
		memset(blocks->bytes[place], mark, blocks->count[place]);
	}
}

static void free_blocks(struct blocks *blocks)
{
	for (int i = 0; i < BLOCKS; i++)
		free(blocks->bytes[i]);
}

static lua_State *open_vm(void)
{
	lua_State *L = luaL_newstate();

	luaL_openlibs(L);
	if (luaL_loadstring(L, "function hot(n)\n"
	                       "  local s = 0\n"
	                       "  for i = 1, n do s = s + i % 7 end\n"
	                       "  return s\n"
	                       "end") ||
	    lua_pcall(L, 0, 0, 0))
		fail(lua_tostring(L, -1));
	return L;
}

static void run_hot(lua_State *L)
{
	lua_getglobal(L, "hot");
	lua_pushinteger(L, 100000);
	if (lua_pcall(L, 1, 1, 0))
		fail(lua_tostring(L, -1));
	if (lua_tointeger(L, -1) != 299997 + 3)
		fail("hot() has computed something else");
	lua_pop(L, 1);
}

static void use_memory(void)
{
	struct blocks blocks = {.random = 1};
	lua_State *L = open_vm();

	while (!is_over()) {
		allocate(&blocks, 0x5a);
		run_hot(L);
	}
	free_blocks(&blocks);
	lua_close(L);
}

static void use_libraries(void)
{
	lua_State *L = open_vm();

	while (!is_over()) {
		void *library = dlopen("libz.so.1", RTLD_NOW);
		void *other = dlopen("libm.so.6", RTLD_NOW | RTLD_NOLOAD);

		if (!library || !dlsym(library, "crc32"))
			fail(dlerror());
		if (other)
			dlclose(other);
		dlclose(library);
		run_hot(L);
	}
	lua_close(L);
}

static void *live_shortly(void *argument)
{
	struct blocks blocks = {.random = (unsigned int)(size_t)argument};

	allocate(&blocks, 0x77);
	free_blocks(&blocks);
	return NULL;
}

static void *work(void *argument)
{
	struct blocks blocks = {.random = (unsigned int)(size_t)argument};
	lua_State *L = open_vm();

	while (!is_over()) {
		pthread_t other;

		allocate(&blocks, (unsigned char)(size_t)argument);
		run_hot(L);
		if (pthread_create(&other, NULL, live_shortly, argument))
			fail("pthread_create");
		pthread_join(other, NULL);
	}
	free_blocks(&blocks);
	lua_close(L);
	return NULL;
}

static void use_threads(void)
{
	pthread_t threads[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(i + 1)))
			fail("pthread_create");
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* ---- refused ------------------------------------------------------------------- */

static void run_until_over(void)
{
	lua_State *L = open_vm();

	while (!is_over())
		run_hot(L);
	lua_close(L);
}

static void be_traced(void)
{
	pid_t child = fork();

	if (child == 0) {
		run_until_over();
		_exit(0);
	}
	if (ptrace(PTRACE_SEIZE, child, NULL, NULL) < 0)
		fail("ptrace");
	printf("%d\n", (int)child);
	fflush(stdout);
	waitpid(child, NULL, 0);
}

static void block_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	run_until_over();
}

static void be_filtered(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = {.len = 1, .filter = &allow};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
		fail("seccomp");
	run_until_over();
}

static void *wait_in_vfork(void *argument)
{
	double *end = argument;

	if (vfork() == 0) {
		nanosleep(&long_time, NULL);
		_exit(0);
	}
	*end = seconds();
	return NULL;
}

/* Stopped late, its thread would wait for the recorder's end. */
static void wait_for_child(void)
{
	double start = seconds(), end = 0;
	pthread_t thread;

	if (pthread_create(&thread, NULL, wait_in_vfork, &end))
		fail("pthread_create");
	run_until_over();
	pthread_join(thread, NULL);
	if (end - start > 2 * BLOCKED_SECONDS)
		fail("a thread was held up");
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	{"memory", use_memory},      {"libraries", use_libraries},
	{"threads", use_threads},    {"traced", be_traced},
	{"blocking", block_signals}, {"filtered", be_filtered},
	{"vfork", wait_for_child},
};

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(what, modes[i].name) != 0)
			continue;
		modes[i].run();
		puts("ok");
		return 0;
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		lua_State *L;

		if (strcmp(what, calls[i].name) != 0)
			continue;
		L = open_vm();
		block_in(calls[i].call);
		lua_close(L);
		return 0;
	}
	fail("unknown mode");
}
