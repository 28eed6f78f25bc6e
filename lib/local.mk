# SPDX-License-Identifier: MIT
# What runs inside the VM's process. Each part is a convenience library, which
# its tests link too; libluajit-sysprof.so is made of all of them.

include_HEADERS += lib/lmisclib.h

noinst_LTLIBRARIES += lib/libbase.la
lib_libbase_la_SOURCES = lib/error.c lib/error.h \
	lib/dump_file.c lib/dump_file.h \
	lib/load_faults.c lib/load_faults.h lib/load_sig.c lib/load_sig.h \
	lib/own_thread.c lib/own_thread.h

# The native stack.
noinst_LTLIBRARIES += lib/libhost.la
lib_libhost_la_SOURCES = lib/host/cpu.h lib/host/cpu_x86_64.h \
	lib/host/eh_frame.c lib/host/eh_frame.h \
	lib/host/cfa_program.c lib/host/cfa_program.h \
	lib/host/dwarf_cursor.c lib/host/dwarf_cursor.h \
	lib/host/unwind_rows.c lib/host/unwind_rows.h \
	lib/host/elf_image.c lib/host/elf_image.h \
	lib/host/host_symbols.c lib/host/host_symbols.h \
	lib/host/kernel_symbols.c lib/host/kernel_symbols.h \
	lib/host/mappings.c lib/host/mappings.h \
	lib/host/object_symbols.c lib/host/object_symbols.h \
	lib/host/own_memory.c lib/host/own_memory.h \
	lib/host/unwind_sig.h lib/host/unwind_x86_64_sig.c \
	lib/host/unwind_guess_sig.c \
	lib/host/unwind_table.c lib/host/unwind_table.h \
	lib/host/unwind_table_sig.c

# Not part of the library yet; built by tests/aarch64/check-aarch64.sh.
EXTRA_DIST += lib/host/cpu_aarch64.h lib/host/unwind_aarch64_sig.c

# Reading an unmodified LuaJIT.
noinst_LTLIBRARIES += lib/libvm.la
lib_libvm_la_SOURCES = lib/vm/call_name_sig.c lib/vm/call_name_sig.h \
	lib/vm/check.c lib/vm/check.h \
	lib/vm/code.c lib/vm/code.h lib/vm/code_sig.c lib/vm/fast_names.c \
	lib/vm/guest_sig.c lib/vm/guest_sig.h \
	lib/vm/interpreter_sig.c lib/vm/interpreter_sig.h \
	lib/vm/layout.c lib/vm/layout.h \
	lib/vm/moved_stack_sig.c lib/vm/moved_stack_sig.h \
	lib/vm/object_sig.c lib/vm/object_sig.h \
	lib/vm/registry_sig.c lib/vm/registry_sig.h \
	lib/vm/trace_code.c lib/vm/trace_code.h \
	lib/vm/running.c lib/vm/running.h \
	lib/vm/trace_place_sig.c lib/vm/trace_place_sig.h \
	lib/vm/trace_sig.c lib/vm/trace_sig.h lib/vm/vm.c lib/vm/vm.h \
	lib/vm/vm_frame_sig.h lib/vm/vm_frame_x86_64_sig.c

# The dump's encoder and codec, which the tools read with.
noinst_LTLIBRARIES += lib/libstream.la
lib_libstream_la_SOURCES = lib/stream/sysprof_format.h \
	lib/stream/codec.c lib/stream/codec.h \
	lib/stream/sysprof_write.c lib/stream/sysprof_write.h \
	lib/stream/extension_write.h lib/stream/memprof_format.h \
	lib/stream/memprof_write.c lib/stream/memprof_write.h \
	lib/stream/call_tree.c lib/stream/call_tree.h \
	lib/stream/frame_name.c lib/stream/frame_name.h \
	lib/stream/vm_part_name.c

# The two stacks as one. Apart, since the single-step test takes it alone.
noinst_LTLIBRARIES += lib/libwalk.la
lib_libwalk_la_SOURCES = lib/walk_sig.c lib/walk_sig.h

# Names of Lua functions, from their sources.
noinst_LTLIBRARIES += lib/libnames.la
lib_libnames_la_SOURCES = lib/function_names.c lib/function_names.h \
	lib/lua_definitions.c lib/lua_definitions.h

# The way of a sample, from the clock to the dump.
noinst_LTLIBRARIES += lib/libclock.la lib/libsampler.la lib/libwriter.la \
	lib/libsession.la
lib_libclock_la_SOURCES = lib/sample.h \
	lib/clock.c lib/clock.h lib/clock_events.c lib/clock_sig.c \
	lib/ring.c lib/ring_sig.c lib/ring_sig.h
lib_libsampler_la_SOURCES = lib/labels.c lib/labels_sig.c lib/labels_sig.h \
	lib/labels_state.h lib/sample_signal.c lib/sample_signal.h \
	lib/sampled_threads.c lib/sampled_threads.h \
	lib/sampler.c lib/sampler_sig.c \
	lib/sampler_sig.h lib/sampler_state.h \
	lib/lua_symbols.c lib/lua_symbols_sig.c lib/lua_symbols_sig.h
lib_libwriter_la_SOURCES = lib/dump_stream.c lib/dump_stream.h \
	lib/perf_names.c lib/perf_names.h \
	lib/sample_writer.c lib/sample_writer.h \
	lib/object_writer.c lib/object_writer.h \
	lib/rotation.c lib/rotation.h lib/rotation_files.h \
	lib/writer.c lib/writer.h \
	lib/symbol_writer.c lib/symbol_writer.h
lib_libsession_la_SOURCES = lib/environment.c lib/environment.h \
	lib/fatal_signals.c lib/fatal_signals.h \
	lib/sysprof_options.h \
	lib/session.c lib/session.h lib/session_parts.c \
	lib/session_process.c lib/session_state.h lib/sysprof_api.c \
	lib/perf_share.c lib/perf_share.h \
	lib/traces.c lib/traces.h lib/vm_guard.c lib/vm_guard.h \
	lib/label_module.c lib/label_module.h \
	lib/misc_module.c lib/memprof_module.c lib/memprof_module.h \
	lib/lua_options.c lib/lua_options.h

# The way of an allocation.
noinst_LTLIBRARIES += lib/libmemprof.la
lib_libmemprof_la_SOURCES = lib/allocation.h \
	lib/alloc_recorder.c lib/alloc_recorder.h \
	lib/alloc_writer.c lib/alloc_writer.h \
	lib/live_blocks.c lib/live_blocks.h \
	lib/memprof.c lib/memprof.h

# --- libluajit-sysprof.so ----------------------------------------------------

# Never unloaded: signals may be on their way to the handler, and lua_close()
# unloads the modules of its VM while a profile may still be ending.
# Never linked to a libluajit: the lua_* symbols are those of the process that
# loads the library, or a second VM would be profiled instead of its own.
# The list of symbols is also what tests/check-exported-symbols.sh expects.
lib_LTLIBRARIES += lib/libluajit-sysprof.la
lib_libluajit_sysprof_la_SOURCES =
lib_libluajit_sysprof_la_LIBADD = lib/libsession.la lib/libmemprof.la \
	lib/libwriter.la \
	lib/libsampler.la lib/libwalk.la lib/libvm.la lib/libclock.la \
	lib/libnames.la lib/libstream.la lib/libhost.la lib/libbase.la \
	perfmap/libperfmap.la $(LIBELF_LIBS) -lm
lib_libluajit_sysprof_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 \
	-export-symbols $(srcdir)/lib/libluajit-sysprof.sym \
	-Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete
EXTRA_lib_libluajit_sysprof_la_DEPENDENCIES = lib/libluajit-sysprof.sym
EXTRA_DIST += lib/libluajit-sysprof.sym

# --- misc.so -----------------------------------------------------------------

# A host that links the library and its Lua code share one profile, so the
# module is only a door to the library.
luacmoddir = $(lua_cmoddir)
luacmod_LTLIBRARIES = lib/misc.la
lib_misc_la_SOURCES = lib/misc.c
lib_misc_la_LIBADD = lib/libluajit-sysprof.la
lib_misc_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version \
	-export-symbols $(srcdir)/lib/misc.sym -Wl,-z,now -Wl,-z,relro \
	$(MODULE_RPATH)
EXTRA_lib_misc_la_DEPENDENCIES = lib/misc.sym
EXTRA_DIST += lib/misc.sym
