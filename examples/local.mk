# SPDX-License-Identifier: MIT
# Installed as documentation: they also show how to use the Lua API.
examplesdir = $(docdir)/examples
dist_examples_DATA = examples/callbacks.lua examples/profile.lua \
	examples/shares.lua examples/traces.lua
