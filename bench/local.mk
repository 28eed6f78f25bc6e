# SPDX-License-Identifier: MIT
# Programs that measure; make bench builds them. Figures depend on what else the
# machine does, so no check runs them.
bench_programs = bench/delivery bench/handler_cost
EXTRA_PROGRAMS += $(bench_programs)
CLEANFILES += $(bench_programs)
# Loaded by a program in Lua.
bench_modules = bench/empty_clock.la
EXTRA_LTLIBRARIES = $(bench_modules)
bench_empty_clock_la_SOURCES = bench/empty_clock.c
bench_empty_clock_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere
bench_empty_clock_la_LIBADD = lib/libclock.la lib/libbase.la
bench_delivery_LDADD = lib/libclock.la lib/libbase.la
bench_handler_cost_LDADD = lib/libsampler.la lib/libwalk.la lib/libvm.la \
	lib/libclock.la lib/libstream.la lib/libhost.la \
	perfmap/libperfmap.la lib/libbase.la $(LUAJIT_LIBS) $(LIBELF_LIBS)
EXTRA_DIST += bench/deep.lua bench/slow-down.sh bench/slow-down.lua bench/paired.lua bench/start.lua \
	bench/perf-names.sh bench/perf-live.lua bench/traces.lua bench/memprof.sh \
	bench/allocations.lua
