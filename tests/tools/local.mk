# SPDX-License-Identifier: MIT
# Tests of reading: formats, questions, damage, speed.

tools_test_scripts = tests/tools/check-formats.sh \
	tests/tools/check-bytes.sh tests/tools/check-questions.sh \
	tests/tools/check-help.sh \
	tests/end-to-end/flame-graph.sh \
	tests/fuzz/fuzz-outputs.sh
dist_check_SCRIPTS += $(tools_test_scripts)
TESTS += $(tools_test_scripts)
EXTRA_DIST += tests/tools/check-formats.py tests/end-to-end/browser.py \
	tests/end-to-end/flame-graph.py tests/fuzz/fuzz_outputs.c

check_PROGRAMS += tests/unit/test_dump_versions
TESTS += tests/unit/test_dump_versions
tests_unit_test_dump_versions_CPPFLAGS = $(tools_cppflags)
tests_unit_test_dump_versions_LDADD = tools/liboutput.la $(CHECK_LIBS)
