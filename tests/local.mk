# SPDX-License-Identifier: MIT
# Unit tests are programs in tests/unit (one a module), the rest are scripts.
# Exit 77 is a skip and says why.

dist_check_SCRIPTS += tests/check-exported-symbols.sh \
	tests/check-signal-safety.sh
TESTS += tests/check-exported-symbols.sh tests/check-signal-safety.sh
