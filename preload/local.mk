# SPDX-License-Identifier: MIT
# What `luajit-sysprof record` preloads into a program. Linked to libc alone.

lib_LTLIBRARIES += preload/libluajit-sysprof-preload.la
preload_libluajit_sysprof_preload_la_SOURCES = preload/preload.c
preload_libluajit_sysprof_preload_la_CPPFLAGS = -D_GNU_SOURCE
preload_libluajit_sysprof_preload_la_LDFLAGS = $(AM_LDFLAGS) -module \
	-avoid-version -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete

# What `luajit-sysprof record -p` loads into a process.
lib_LTLIBRARIES += preload/libluajit-sysprof-agent.la
preload_libluajit_sysprof_agent_la_SOURCES = preload/agent.c \
	preload/attach_block.h
preload_libluajit_sysprof_agent_la_CPPFLAGS = -D_GNU_SOURCE -I$(top_srcdir)/lib
preload_libluajit_sysprof_agent_la_LDFLAGS = $(AM_LDFLAGS) -module \
	-avoid-version -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete
