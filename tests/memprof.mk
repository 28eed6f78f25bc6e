# SPDX-License-Identifier: MIT
# Tests of the memory profiler, its reader and the reading modules.

memory_fixture = tests/unit/dump_fixture.c tests/unit/dump_fixture.h \
	tests/unit/memory_fixture.c tests/unit/memory_fixture.h
check_PROGRAMS += tests/unit/test_memprof_stream tests/write_memory_dump
TESTS += tests/unit/test_memprof_stream
tests_unit_test_memprof_stream_SOURCES = tests/unit/test_memprof_stream.c \
	$(memory_fixture)
tests_unit_test_memprof_stream_CPPFLAGS = $(tools_cppflags)
tests_unit_test_memprof_stream_LDADD = tools/libmemprofcommand.la $(CHECK_LIBS)
tests_write_memory_dump_SOURCES = tests/write_memory_dump.c $(memory_fixture)
tests_write_memory_dump_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_write_memory_dump_LDADD = lib/libstream.la

dist_check_SCRIPTS += tests/check-parse-memprof.sh tests/check-memprof-corpus.sh
TESTS += tests/check-parse-memprof.sh tests/check-memprof-corpus.sh

# Linked as a host is, to LuaJIT and to the library.
check_PROGRAMS += tests/end-to-end/memprof_host
TESTS += tests/end-to-end/memprof_host
tests_end_to_end_memprof_host_LDADD = lib/libluajit-sysprof.la $(LUAJIT_LIBS) \
	$(CHECK_LIBS)
dist_check_SCRIPTS += tests/end-to-end/memprof.sh
EXTRA_DIST += tests/end-to-end/allocations.lua
TESTS += tests/end-to-end/memprof.sh

# Any bytes. Needs clang's libFuzzer; skips where that is missing.
dist_check_SCRIPTS += tests/fuzz/fuzz.sh
EXTRA_DIST += tests/fuzz/fuzz_dump.c
TESTS += tests/fuzz/fuzz.sh
