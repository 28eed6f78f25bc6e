# SPDX-License-Identifier: MIT
dist_man_MANS += doc/luajit-sysprof.1 doc/luajit-sysprof.3 doc/luajit-sysprof.7
EXTRA_DIST += doc/internals.md
dist_man_MANS += doc/luajit-parse-sysprof.1
dist_man_MANS += doc/luajit-parse-memprof.1 doc/luajit-memprof.7
EXTRA_DIST += doc/memprof-format.md
EXTRA_DIST += doc/dump-format.md
