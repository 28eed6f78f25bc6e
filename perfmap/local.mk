# SPDX-License-Identifier: MIT
# What perf reads. Knows nothing of LuaJIT.

noinst_LTLIBRARIES += perfmap/libperfmap.la
perfmap_libperfmap_la_SOURCES = perfmap/arena.c perfmap/arena_sig.c \
	perfmap/arena_sig.h perfmap/beacon_probe_sig.S \
	perfmap/beacon_probe_sig.h perfmap/beacon_sig.c perfmap/beacon_sig.h \
	perfmap/jitdump.c perfmap/jitdump.h \
	perfmap/mapfile.c perfmap/mapfile.h \
	perfmap/own_file.c perfmap/own_file.h
