# SPDX-License-Identifier: MIT
dist_man_MANS += doc/luajit-sysprof.3 doc/luajit-sysprof.7
EXTRA_DIST += doc/internals.md
dist_man_MANS += doc/luajit-parse-sysprof.1
EXTRA_DIST += doc/dump-format.md
