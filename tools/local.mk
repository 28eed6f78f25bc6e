# SPDX-License-Identifier: MIT
# The commands. They share nothing with the profiled process but lib/stream.

tools_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/tools

noinst_LTLIBRARIES += tools/libprofile.la
tools_libprofile_la_CPPFLAGS = $(tools_cppflags)
tools_libprofile_la_LIBADD = lib/libstream.la $(LIBDW_LIBS) $(LIBIBERTY_LIBS)
tools_libprofile_la_SOURCES = \
	tools/profile/compat_join.c tools/profile/compat_join.h \
	tools/profile/demangle.c tools/profile/demangle.h \
	tools/profile/dump_reader.c tools/profile/dump_reader.h \
	tools/profile/extension.c \
	tools/profile/fast_names.c tools/profile/fast_names.h \
	tools/profile/id_map.c tools/profile/id_map.h \
	tools/profile/join.c tools/profile/join.h \
	tools/profile/load.c tools/profile/load.h \
	tools/profile/loader.h \
	tools/profile/memory.c tools/profile/memory.h \
	tools/profile/name_table.c tools/profile/name_table.h \
	tools/profile/naming.c \
	tools/profile/profile.c tools/profile/profile.h \
	tools/profile/select.c tools/profile/select.h \
	tools/profile/stack_view.c tools/profile/stack_view.h \
	tools/profile/symbolize.c tools/profile/symbolize.h \
	tools/profile/symbols.c tools/profile/symbols.h

# Memory profiles. To be linked with libprofile, which liboutput brings too.
noinst_LTLIBRARIES += tools/libmemory.la
tools_libmemory_la_CPPFLAGS = $(tools_cppflags)
tools_libmemory_la_LIBADD = -lm
tools_libmemory_la_SOURCES = \
	tools/memory/allocations.c tools/memory/allocations.h \
	tools/memory/blocks.c tools/memory/blocks.h \
	tools/memory/memory_load.c tools/memory/memory_load.h \
	tools/memory/memory_stacks.c tools/memory/memory_stacks.h

noinst_LTLIBRARIES += tools/liboutput.la
tools_liboutput_la_CPPFLAGS = $(tools_cppflags)
tools_liboutput_la_LIBADD = tools/libprofile.la $(LIBELF_LIBS)
tools_liboutput_la_SOURCES = \
	tools/output/callgrind.c \
	tools/output/companion.c tools/output/companion.h \
	tools/output/compat.c \
	tools/output/firefox.c \
	tools/output/flame_class.c tools/output/flame_class.h \
	tools/output/flame_data.c tools/output/flame_data.h \
	tools/output/folded.c \
	tools/output/html.c tools/output/html_page.h \
	tools/output/json.c \
	tools/output/json_text.c tools/output/json_text.h \
	tools/output/output.c tools/output/output.h \
	tools/output/perf_data.c \
	tools/output/perf_objects.c tools/output/perf_objects.h \
	tools/output/perf_record.c tools/output/perf_record.h \
	tools/output/speedscope.c \
	tools/output/svg.c \
	tools/output/top.c

# pprof's messages are generated, so this format is left out where protobuf-c
# is missing.
EXTRA_DIST += tools/output/pprof.proto
if HAVE_PPROF
noinst_LTLIBRARIES += tools/libpprof.la
tools_libpprof_la_CPPFLAGS = $(tools_cppflags) -Itools $(PPROF_CFLAGS)
tools_libpprof_la_LIBADD = $(PPROF_LIBS)
tools_libpprof_la_SOURCES = tools/output/pprof.c
nodist_tools_libpprof_la_SOURCES = tools/output/pprof.pb-c.c \
	tools/output/pprof.pb-c.h
tools_liboutput_la_LIBADD += tools/libpprof.la
BUILT_SOURCES = tools/output/pprof.pb-c.h
CLEANFILES += tools/output/pprof.pb-c.c tools/output/pprof.pb-c.h
tools/output/pprof.pb-c.c: tools/output/pprof.proto
	$(AM_V_GEN)$(MKDIR_P) tools/output && \
		$(PROTOC_C) --proto_path=$(srcdir)/tools/output \
			--c_out=tools/output pprof.proto
tools/output/pprof.pb-c.h: tools/output/pprof.pb-c.c
tools/output/libpprof_la-pprof.lo tools/output/libpprof_la-pprof.pb-c.lo: tools/output/pprof.pb-c.h
endif

# The page of flame graphs, as C strings.
nodist_tools_liboutput_la_SOURCES = tools/output/html_page.c
page_texts = tools/output/page.html tools/output/flame.css \
	tools/output/flame.js
EXTRA_DIST += $(page_texts)
CLEANFILES += tools/output/html_page.c
tools/output/html_page.c: $(page_texts)
	$(AM_V_GEN)$(MKDIR_P) tools/output && { \
		echo '#include "output/html_page.h"'; \
		for text in html_page:page.html flame_style:flame.css \
			flame_script:flame.js; do \
			echo "const char $${text%:*}[] ="; \
			sed 's/[\\"]/\\&/g; s/^/"/; s/$$/\\n"/' \
				"$(srcdir)/tools/output/$${text#*:}"; \
			echo ';'; \
		done; } > $@

# The commands are functions: programs and Lua modules run them.
noinst_LTLIBRARIES += tools/libsysprofcommand.la
tools_libsysprofcommand_la_CPPFLAGS = $(tools_cppflags)
tools_libsysprofcommand_la_LIBADD = tools/liboutput.la -lm
tools_libsysprofcommand_la_SOURCES = tools/luajit_parse_sysprof.c \
	tools/sysprof_command.h \
	tools/live.c tools/live.h \
	tools/parse_options.c tools/parse_options.h \
	tools/parser_command.c tools/parser_command.h

# bash loads it by the name of the command.
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = tools/completion/luajit-parse-sysprof.bash

bin_PROGRAMS += tools/luajit-parse-sysprof
tools_luajit_parse_sysprof_CPPFLAGS = $(tools_cppflags)
tools_luajit_parse_sysprof_LDADD = tools/libsysprofcommand.la
tools_luajit_parse_sysprof_SOURCES = tools/sysprof_main.c

noinst_LTLIBRARIES += tools/libmemprofcommand.la
tools_libmemprofcommand_la_CPPFLAGS = $(tools_cppflags)
tools_libmemprofcommand_la_LIBADD = tools/libmemory.la tools/liboutput.la
tools_libmemprofcommand_la_SOURCES = \
	tools/memprof_command.c tools/memprof_command.h \
	tools/parser_command.c tools/parser_command.h \
	tools/output/memory_common.c tools/output/memory_compat.c \
	tools/output/memory_output.h tools/output/memory_tables.c

bin_PROGRAMS += tools/luajit-parse-memprof
tools_luajit_parse_memprof_CPPFLAGS = $(tools_cppflags)
tools_luajit_parse_memprof_LDADD = tools/libmemprofcommand.la
tools_luajit_parse_memprof_SOURCES = tools/luajit_parse_memprof.c

# --- reading dumps from Lua --------------------------------------------------

lua_module_ldflags = $(AM_LDFLAGS) -module -avoid-version -Wl,-z,now \
	-Wl,-z,relro

luacmod_LTLIBRARIES += tools/memprof.la tools/sysprof.la
tools_memprof_la_CPPFLAGS = $(tools_cppflags)
tools_memprof_la_SOURCES = tools/lua/command.c tools/lua/command.h \
	tools/lua/memprof.c
tools_memprof_la_LIBADD = tools/libmemprofcommand.la
tools_memprof_la_LDFLAGS = $(lua_module_ldflags) \
	-export-symbols-regex '^luaopen_memprof$$'
tools_sysprof_la_CPPFLAGS = $(tools_cppflags)
tools_sysprof_la_SOURCES = tools/lua/command.c tools/lua/command.h \
	tools/lua/sysprof.c
tools_sysprof_la_LIBADD = tools/libsysprofcommand.la
tools_sysprof_la_LDFLAGS = $(lua_module_ldflags) \
	-export-symbols-regex '^luaopen_sysprof$$'

# --- luajit-sysprof ----------------------------------------------------------

bin_PROGRAMS += tools/luajit-sysprof
tools_luajit_sysprof_CPPFLAGS = $(tools_cppflags) -I$(top_srcdir)/preload \
	-DLIBRARY_DIRECTORY='"$(libdir)"'
tools_luajit_sysprof_CCASFLAGS = -I$(top_srcdir)/preload
tools_luajit_sysprof_LDADD = tools/liboutput.la $(LIBELF_LIBS) -lm
tools_luajit_sysprof_SOURCES = tools/luajit_sysprof.c \
	tools/commands/attach.c tools/commands/attach.h \
	tools/commands/attach_stub.S \
	tools/commands/blocked_time.c tools/commands/blocked_time.h \
	tools/commands/commands.h \
	tools/commands/doctor.c \
	tools/commands/guest_samples.c tools/commands/guest_samples.h \
	tools/commands/implant.c tools/commands/implant.h \
	tools/commands/inject.c \
	tools/commands/lua_children.c tools/commands/lua_children.h \
	tools/commands/moment.c tools/commands/moment.h \
	tools/commands/perf_command.c \
	tools/commands/perf_file.c tools/commands/perf_file.h \
	tools/commands/perf_run.c tools/commands/perf_run.h \
	tools/commands/perf_sample.c tools/commands/perf_sample.h \
	tools/commands/probe.c tools/commands/probe.h \
	tools/commands/process.c tools/commands/process.h \
	tools/commands/record.c \
	tools/commands/record_process.c tools/commands/record_process.h \
	tools/commands/refusal.c tools/commands/refusal.h \
	tools/commands/rotated_dumps.c tools/commands/rotated_dumps.h \
	tools/commands/show.c \
	tools/commands/target.c tools/commands/target.h \
	tools/commands/tracee.c tools/commands/tracee.h

# For work on lib/vm, whose table of layouts it reads and writes rows of: the
# one tool that knows the profiler's own headers. Not installed.
noinst_PROGRAMS = tools/vm-layout-probe
tools_vm_layout_probe_CPPFLAGS = $(AM_CPPFLAGS) $(LIBDW_CFLAGS)
tools_vm_layout_probe_SOURCES = tools/vm_layout_probe.c lib/vm/layout.c
tools_vm_layout_probe_LDADD = $(LIBDW_LIBS) $(LIBELF_LIBS)
