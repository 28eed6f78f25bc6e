// SPDX-License-Identifier: MIT
/*
 * A host in C with functions of its own between Lua and Lua.
 *
 * usage: host [-t] SCRIPT DUMP SECONDS. -t: on a thread of its own.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#define KEPT __attribute__((visibility("default"), noinline))

KEPT int host_work(lua_State *L);
KEPT int host_call(lua_State *L);
KEPT void *host_thread(void *arguments);
KEPT void host_handler(int signal);
KEPT int host_signals(lua_State *L);

int host_work(lua_State *L)
{
	volatile uint64_t sum = 0;
	uint64_t i, count = (uint64_t)luaL_checknumber(L, 1);

	for (i = 0; i < count; i++)
		sum += i ^ sum >> 3;
	lua_pushnumber(L, (lua_Number)(sum & 0xffff));
	return 1;
}

int host_call(lua_State *L)
{
	char room[2000];

	memset(room, lua_gettop(L), sizeof(room));
	lua_call(L, lua_gettop(L) - 1, 0);
	lua_pushinteger(L, room[sizeof(room) - 1]);
	return 1;
}

static long cpu_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000l + now.tv_nsec / 1000;
}

void host_handler(int signal)
{
	long started = cpu_us();

	while (cpu_us() - started < 3000)
		;
	(void)signal;
}

int host_signals(lua_State *L)
{
	struct sigaction action = {.sa_handler = host_handler,
	                           .sa_flags = SA_RESTART};
	struct itimerval timer = {.it_interval = {0, 0}};

	timer.it_value.tv_usec = timer.it_interval.tv_usec =
		luaL_checkinteger(L, 1);
	sigaction(SIGVTALRM, &action, NULL);
	setitimer(ITIMER_VIRTUAL, &timer, NULL);
	return 0;
}

void *host_thread(void *arguments)
{
	char **argv = arguments;
	lua_State *L = luaL_newstate();

	luaL_openlibs(L);
	lua_register(L, "host_work", host_work);
	lua_register(L, "host_call", host_call);
	lua_register(L, "host_signals", host_signals);
	lua_createtable(L, 2, 0);
	lua_pushstring(L, argv[1]);
	lua_rawseti(L, -2, 1);
	lua_pushstring(L, argv[2]);
	lua_rawseti(L, -2, 2);
	lua_setglobal(L, "arg");
	if (luaL_dofile(L, argv[0])) {
		fprintf(stderr, "%s\n", lua_tostring(L, -1));
		exit(1);
	}
	lua_close(L);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc == 5 && !strcmp(argv[1], "-t")) {
		pthread_create(&thread, NULL, host_thread, argv + 2);
		pthread_join(thread, NULL);
		return 0;
	}
	if (argc != 4)
		return 2;
	host_thread(argv + 1);
	return 0;
}
