# SPDX-License-Identifier: MIT
# Unit tests are programs in tests/unit (one a module), the rest are scripts.
# Exit 77 is a skip and says why.

dist_check_SCRIPTS += tests/check-exported-symbols.sh \
	tests/check-signal-safety.sh
TESTS += tests/check-exported-symbols.sh tests/check-signal-safety.sh
EXTRA_DIST += tests/check-everything.sh tests/common.sh \
	tests/commands.sh tests/fuzz/common.sh

check_PROGRAMS += tests/unit/test_arena tests/unit/test_beacon \
	tests/unit/test_mapfile
TESTS += tests/unit/test_arena tests/unit/test_beacon tests/unit/test_mapfile
tests_unit_test_arena_LDADD = perfmap/libperfmap.la $(CHECK_LIBS)
tests_unit_test_beacon_LDADD = perfmap/libperfmap.la $(CHECK_LIBS) \
	$(LIBELF_LIBS)
tests_unit_test_mapfile_LDADD = perfmap/libperfmap.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_jitdump
TESTS += tests/unit/test_jitdump
tests_unit_test_jitdump_LDADD = perfmap/libperfmap.la $(CHECK_LIBS)
check_PROGRAMS += tests/unit/test_perf_names
TESTS += tests/unit/test_perf_names
tests_unit_test_perf_names_LDADD = lib/libwriter.la lib/libstream.la \
	perfmap/libperfmap.la lib/libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_host_symbols
TESTS += tests/unit/test_host_symbols
tests_unit_test_host_symbols_LDADD = lib/libhost.la lib/libbase.la \
	$(CHECK_LIBS) $(LIBELF_LIBS)

# A library that is loaded while a test runs. -rpath makes libtool build a shared
# object, which nobody installs.
check_LTLIBRARIES += tests/unit/late_library.la
tests_unit_late_library_la_SOURCES = tests/unit/late_library.c
tests_unit_late_library_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version \
	-rpath /nowhere
# The same without unwind rules.
check_LTLIBRARIES += tests/unit/bare_framed.la tests/unit/bare_frameless.la
bare_cflags = -std=gnu11 $(WARNING_CFLAGS) -O1 -fno-asynchronous-unwind-tables \
	-fno-unwind-tables
tests_unit_bare_framed_la_SOURCES = tests/unit/bare_library.c
tests_unit_bare_framed_la_CPPFLAGS = $(AM_CPPFLAGS) -DBARE_CALL=bare_framed
tests_unit_bare_framed_la_CFLAGS = $(bare_cflags) -fno-omit-frame-pointer
tests_unit_bare_framed_la_LDFLAGS = $(tests_unit_late_library_la_LDFLAGS)
tests_unit_bare_frameless_la_SOURCES = tests/unit/bare_library.c
tests_unit_bare_frameless_la_CPPFLAGS = $(AM_CPPFLAGS) \
	-DBARE_CALL=bare_frameless
tests_unit_bare_frameless_la_CFLAGS = $(bare_cflags) -fomit-frame-pointer
tests_unit_bare_frameless_la_LDFLAGS = $(tests_unit_late_library_la_LDFLAGS)
check_PROGRAMS += tests/unit/test_unwind_table
TESTS += tests/unit/test_unwind_table
tests_unit_test_unwind_table_LDADD = lib/libhost.la lib/libbase.la \
	$(CHECK_LIBS) $(LIBELF_LIBS)

check_PROGRAMS += tests/unit/test_ring tests/unit/test_clock
TESTS += tests/unit/test_ring tests/unit/test_clock
tests_unit_test_ring_LDADD = lib/libclock.la lib/libbase.la $(CHECK_LIBS)
tests_unit_test_clock_LDADD = lib/libclock.la lib/libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_writer
TESTS += tests/unit/test_writer
tests_unit_test_writer_LDADD = lib/libwriter.la lib/libclock.la \
	lib/libstream.la lib/libvm.la lib/libhost.la \
	perfmap/libperfmap.la lib/libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_labels
TESTS += tests/unit/test_labels
tests_unit_test_labels_LDADD = lib/libsampler.la lib/libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_moved_stack
TESTS += tests/unit/test_moved_stack
tests_unit_test_moved_stack_LDADD = lib/libvm.la lib/libbase.la $(CHECK_LIBS)

check_PROGRAMS += tests/unit/test_lua_definitions tests/unit/test_function_names
TESTS += tests/unit/test_lua_definitions tests/unit/test_function_names
tests_unit_test_lua_definitions_LDADD = lib/libnames.la $(CHECK_LIBS)
tests_unit_test_function_names_LDADD = lib/libnames.la $(CHECK_LIBS)

dist_check_SCRIPTS += tests/end-to-end/lua-api.sh
EXTRA_DIST += tests/end-to-end/lua-api.lua
TESTS += tests/end-to-end/lua-api.sh

# How many stacks are whole, on programs and hosts of every kind.
dist_check_SCRIPTS += tests/end-to-end/host-stacks.sh
TESTS += tests/end-to-end/host-stacks.sh
EXTRA_DIST += tests/end-to-end/host-stacks/callbacks.lua \
	tests/end-to-end/host-stacks/host.c \
	tests/end-to-end/host-stacks/host.lua \
	tests/end-to-end/host-stacks/lua.lua \
	tests/end-to-end/host-stacks/mixed.lua \
	tests/end-to-end/host-stacks/signals.lua


dist_check_SCRIPTS += tests/soak/soak.sh
EXTRA_DIST += tests/soak/soak.lua
LONG_TESTS += tests/soak/soak.sh

# bench/unwind: a native stack by our tables, libunwind and backtrace().
check_PROGRAMS += bench/unwind
bench_unwind_LDADD = lib/libhost.la lib/libbase.la $(LIBELF_LIBS)

# The native unwinder of another CPU, under qemu.
dist_check_SCRIPTS += tests/aarch64/check-aarch64.sh
EXTRA_DIST += tests/aarch64/unwind_program.c tests/aarch64/vm_program.c
TESTS += tests/aarch64/check-aarch64.sh
LONG_TESTS += tests/aarch64/check-aarch64.sh

# A host that knows its true stack at each sample.
check_PROGRAMS += tests/truth/truth_host
TESTS += tests/truth/truth_host
EXTRA_DIST += tests/truth/truth.lua
tests_truth_truth_host_LDADD = lib/libwalk.la lib/libvm.la lib/libclock.la \
	lib/libhost.la lib/libbase.la $(LUAJIT_LIBS) $(LIBELF_LIBS)
tests_truth_truth_host_LDFLAGS = $(AM_LDFLAGS) -export-dynamic

dist_check_SCRIPTS += tests/end-to-end/native-names.sh
EXTRA_DIST += tests/end-to-end/bytecodes.lua
TESTS += tests/end-to-end/native-names.sh

dist_check_SCRIPTS += tests/end-to-end/deep-stacks.sh
EXTRA_DIST += tests/end-to-end/deep-stacks.lua
TESTS += tests/end-to-end/deep-stacks.sh

# With the library of test_unwind_table.
dist_check_SCRIPTS += tests/end-to-end/late-library.sh
EXTRA_DIST += tests/end-to-end/late-library.lua
TESTS += tests/end-to-end/late-library.sh

# Linked as a host is, to LuaJIT and to the library.
check_PROGRAMS += tests/end-to-end/c_api_host
TESTS += tests/end-to-end/c_api_host
tests_end_to_end_c_api_host_LDADD = lib/libluajit-sysprof.la $(LUAJIT_LIBS)

# The dump: its encoder against its reader, names, profile, outputs.
stream_tests = tests/unit/test_codec tests/unit/test_call_tree \
	tests/unit/test_frame_name tests/unit/test_sysprof_stream \
	tests/unit/test_profile
check_PROGRAMS += $(stream_tests) tests/write_small_dump \
	bench/write_large_dump
bench_write_large_dump_LDADD = lib/libstream.la
EXTRA_DIST += bench/parse-speed.sh
dist_check_SCRIPTS += tests/check-parse-sysprof.sh tests/check-sysprof-corpus.sh
TESTS += $(stream_tests) tests/check-parse-sysprof.sh \
	tests/check-sysprof-corpus.sh
dump_fixture = tests/unit/dump_fixture.c tests/unit/dump_fixture.h
tests_unit_test_codec_SOURCES = tests/unit/test_codec.c $(dump_fixture)
tests_unit_test_codec_LDADD = lib/libstream.la $(CHECK_LIBS)
tests_unit_test_call_tree_SOURCES = tests/unit/test_call_tree.c $(dump_fixture)
tests_unit_test_call_tree_LDADD = lib/libstream.la $(CHECK_LIBS)
tests_unit_test_frame_name_LDADD = lib/libstream.la $(CHECK_LIBS)
tests_unit_test_sysprof_stream_SOURCES = tests/unit/test_sysprof_stream.c \
	$(dump_fixture)
tests_unit_test_sysprof_stream_CPPFLAGS = $(tools_cppflags)
tests_unit_test_sysprof_stream_LDADD = tools/libprofile.la $(CHECK_LIBS)
tests_unit_test_profile_SOURCES = tests/unit/test_profile.c $(dump_fixture)
tests_unit_test_profile_CPPFLAGS = $(tools_cppflags)
tests_unit_test_profile_LDADD = tools/liboutput.la $(CHECK_LIBS)
tests_write_small_dump_SOURCES = tests/write_small_dump.c $(dump_fixture)
tests_write_small_dump_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_write_small_dump_LDADD = lib/libstream.la

# Real perf. Both skip where there is none.
check_PROGRAMS += tests/end-to-end/perf_beacon_program
tests_end_to_end_perf_beacon_program_LDADD = perfmap/libperfmap.la
dist_check_SCRIPTS += tests/end-to-end/perf-beacon.sh \
	tests/end-to-end/perf-live.sh
TESTS += tests/end-to-end/perf-beacon.sh tests/end-to-end/perf-live.sh
EXTRA_DIST += tests/end-to-end/perf-probe.sh \
	tests/end-to-end/perf-live/compare.lua \
	tests/end-to-end/perf-live/run.lua \
	tests/end-to-end/perf-live/callbacks.lua \
	tests/end-to-end/perf-live/coroutines.lua \
	tests/end-to-end/perf-live/recursion.lua \
	tests/end-to-end/perf-live/strings.lua

# A sample after every machine instruction. The stepper is a Lua module of the
# tests alone; -rpath makes libtool build a shared object that nobody installs.
check_LTLIBRARIES += tests/step/stepper.la
tests_step_stepper_la_SOURCES = tests/step/stepper.c
tests_step_stepper_la_LIBADD = lib/libwalk.la lib/libvm.la lib/libhost.la \
	lib/libbase.la $(LIBELF_LIBS)
tests_step_stepper_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version \
	-rpath /nowhere
dist_check_SCRIPTS += tests/step/check-step.sh
EXTRA_DIST += tests/step/step.lua tests/step/programs.lua
TESTS += tests/step/check-step.sh
LONG_TESTS += tests/step/check-step.sh

# Ordinary recordings, without a probe.
check_PROGRAMS += tests/end-to-end/perf_jitdump_program
tests_end_to_end_perf_jitdump_program_LDADD = perfmap/libperfmap.la
tests_end_to_end_perf_jitdump_program_SOURCES = \
	tests/end-to-end/perf_jitdump_program.c tests/end-to-end/spin_code.h
check_PROGRAMS += tests/end-to-end/perf_map_program
tests_end_to_end_perf_map_program_SOURCES = \
	tests/end-to-end/perf_map_program.c tests/end-to-end/spin_code.h
dist_check_SCRIPTS += tests/end-to-end/luajit-sysprof.sh \
	tests/end-to-end/perf-data.sh tests/end-to-end/perf-inject.sh \
	tests/end-to-end/perf-jitdump.sh tests/end-to-end/perf-jitdump-rules.sh \
	tests/end-to-end/perf-map-rules.sh tests/end-to-end/perf-data-rules.sh \
	tests/end-to-end/perf-traces.sh tests/end-to-end/traces.sh
TESTS += tests/end-to-end/luajit-sysprof.sh tests/end-to-end/perf-data.sh \
	tests/end-to-end/perf-inject.sh \
	tests/end-to-end/perf-jitdump.sh \
	tests/end-to-end/perf-jitdump-rules.sh \
	tests/end-to-end/perf-map-rules.sh \
	tests/end-to-end/perf-data-rules.sh \
	tests/end-to-end/perf-traces.sh \
	tests/end-to-end/traces.sh
EXTRA_DIST += tests/end-to-end/perf-record.sh \
	tests/end-to-end/perf-rules/collapse.awk \
	tests/end-to-end/perf-rules/jitdump.lua \
	tests/end-to-end/perf-rules/odd_names.lua \
	tests/end-to-end/perf-rules/perf_data.lua \
	tests/end-to-end/perf-traces/before.lua \
	tests/end-to-end/perf-traces/compare.lua \
	tests/end-to-end/perf-traces/flushes.lua \
	tests/end-to-end/perf-traces/fork.lua \
	tests/end-to-end/perf-traces/lines.lua \
	tests/end-to-end/traces.lua

# Programs that know where their time goes.
dist_check_SCRIPTS += tests/end-to-end/shares.sh
EXTRA_DIST += tests/end-to-end/shares.lua
TESTS += tests/end-to-end/shares.sh
LONG_TESTS += tests/end-to-end/shares.sh tests/end-to-end/perf-traces.sh

dist_check_SCRIPTS += tests/end-to-end/labels.sh
EXTRA_DIST += tests/end-to-end/labels.lua
TESTS += tests/end-to-end/labels.sh

# By their definitions, or by their calls.
dist_check_SCRIPTS += tests/end-to-end/function-names.sh
EXTRA_DIST += tests/end-to-end/function-names/run.lua \
	tests/end-to-end/function-names/work.lua
TESTS += tests/end-to-end/function-names.sh

# Several VMs and threads in one process.
check_PROGRAMS += tests/end-to-end/threads_host
tests_end_to_end_threads_host_LDADD = lib/libluajit-sysprof.la $(LUAJIT_LIBS)
dist_check_SCRIPTS += tests/end-to-end/threads.sh
TESTS += tests/end-to-end/threads.sh

dist_check_SCRIPTS += tests/check-vm-layout-probe.sh
EXTRA_DIST += tests/vm_layout_fixture.c
TESTS += tests/check-vm-layout-probe.sh

# Other builds of LuaJIT; those from Debian's mirror in the long form only.
dist_check_SCRIPTS += tests/other-builds.sh
EXTRA_DIST += tests/other_host.c
TESTS += tests/other-builds.sh
LONG_TESTS += tests/other-builds.sh

# What may happen to a process while it is profiled.
dist_check_SCRIPTS += tests/end-to-end/host-events.sh
TESTS += tests/end-to-end/host-events.sh

# Twenty programs: every function stands on one that calls it.
dist_check_SCRIPTS += tests/programs/check-programs.sh
EXTRA_DIST += $(patsubst $(srcdir)/%,%,$(wildcard \
	$(srcdir)/tests/programs/*.lua))
TESTS += tests/programs/check-programs.sh
LONG_TESTS += tests/programs/check-programs.sh

# luajit-sysprof record, and real programs under it, each of which is skipped
# where it is not installed.
real_tests = tests/real/sysbench.sh tests/real/neovim.sh \
	tests/real/dnsdist.sh tests/real/nginx.sh tests/real/attach.sh
dist_check_SCRIPTS += tests/end-to-end/record.sh $(real_tests)
EXTRA_DIST += tests/real/common.sh
TESTS += tests/end-to-end/record.sh $(real_tests)

# What unwind tables cost in real programs.
check_LTLIBRARIES += tests/real/tables_at_exit.la
tests_real_tables_at_exit_la_SOURCES = tests/real/tables_at_exit.c
tests_real_tables_at_exit_la_LIBADD = lib/libhost.la lib/libbase.la \
	$(LIBELF_LIBS)
tests_real_tables_at_exit_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version \
	-rpath /nowhere
dist_check_SCRIPTS += tests/real/tables.sh
TESTS += tests/real/tables.sh

dist_check_SCRIPTS += tests/end-to-end/record-perf.sh
TESTS += tests/end-to-end/record-perf.sh

# Processes that run already.
check_PROGRAMS += tests/end-to-end/attach_host
tests_end_to_end_attach_host_LDADD = $(LUAJIT_LIBS)
dist_check_SCRIPTS += tests/end-to-end/attach.sh \
	tests/end-to-end/attach-options.sh
TESTS += tests/end-to-end/attach.sh tests/end-to-end/attach-options.sh

# Calls that are made to fail.
check_LTLIBRARIES += tests/faults/fail_nth.la
tests_faults_fail_nth_la_SOURCES = tests/faults/fail_nth.c
tests_faults_fail_nth_la_LDFLAGS = -module -avoid-version -rpath /nowhere
dist_check_SCRIPTS += tests/faults/faults.sh
EXTRA_DIST += tests/faults/faults.lua
TESTS += tests/faults/faults.sh

# Nothing is left behind.
dist_check_SCRIPTS += tests/end-to-end/cycles.sh
EXTRA_DIST += tests/end-to-end/cycles.lua
TESTS += tests/end-to-end/cycles.sh

# Profiles in several dumps.
dist_check_SCRIPTS += tests/end-to-end/rotate.sh
EXTRA_DIST += tests/end-to-end/rotate.lua
TESTS += tests/end-to-end/rotate.sh

dist_check_SCRIPTS += tests/end-to-end/kernel.sh
TESTS += tests/end-to-end/kernel.sh

dist_check_SCRIPTS += tests/faults/writes.sh
EXTRA_DIST += tests/faults/writes.lua
TESTS += tests/faults/writes.sh

# What the system refuses or lacks.
check_PROGRAMS += tests/faults/deny
dist_check_SCRIPTS += tests/faults/outside.sh
EXTRA_DIST += tests/faults/outside.lua
TESTS += tests/faults/outside.sh
check_LTLIBRARIES += tests/faults/host_handlers.la
tests_faults_host_handlers_la_SOURCES = tests/faults/host_handlers.c
tests_faults_host_handlers_la_LDFLAGS = -module -avoid-version -rpath /nowhere
dist_check_SCRIPTS += tests/faults/signals.sh
EXTRA_DIST += tests/faults/signals.lua
TESTS += tests/faults/signals.sh
