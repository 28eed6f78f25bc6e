# SPDX-License-Identifier: MIT
# Unit tests are programs in tests/unit (one a module), the rest are scripts.
# Exit 77 is a skip and says why.

dist_check_SCRIPTS += tests/check-exported-symbols.sh \
	tests/check-signal-safety.sh
TESTS += tests/check-exported-symbols.sh tests/check-signal-safety.sh
EXTRA_DIST += tests/check-everything.sh

check_PROGRAMS += tests/unit/test_arena tests/unit/test_beacon \
	tests/unit/test_mapfile
TESTS += tests/unit/test_arena tests/unit/test_beacon tests/unit/test_mapfile
tests_unit_test_arena_LDADD = perfmap/libperfmap.la $(CHECK_LIBS)
tests_unit_test_beacon_LDADD = perfmap/libperfmap.la $(CHECK_LIBS) \
	$(LIBELF_LIBS)
tests_unit_test_mapfile_LDADD = perfmap/libperfmap.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_host_symbols
TESTS += tests/unit/test_host_symbols
tests_unit_test_host_symbols_LDADD = lib/libhost.la lib/libbase.la \
	$(CHECK_LIBS) $(LIBELF_LIBS)

check_PROGRAMS += tests/unit/test_ring tests/unit/test_clock
TESTS += tests/unit/test_ring tests/unit/test_clock
tests_unit_test_ring_LDADD = lib/libclock.la lib/libbase.la $(CHECK_LIBS)
tests_unit_test_clock_LDADD = lib/libclock.la lib/libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_writer
TESTS += tests/unit/test_writer
tests_unit_test_writer_LDADD = lib/libwriter.la lib/libclock.la \
	lib/libstream.la perfmap/libperfmap.la lib/libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_lua_definitions tests/unit/test_function_names
TESTS += tests/unit/test_lua_definitions tests/unit/test_function_names
tests_unit_test_lua_definitions_LDADD = lib/libnames.la $(CHECK_LIBS)
tests_unit_test_function_names_LDADD = lib/libnames.la $(CHECK_LIBS)
