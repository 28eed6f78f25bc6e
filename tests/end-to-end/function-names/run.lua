-- SPDX-License-Identifier: MIT
-- Profiles M.run() of work.lua, or of its bytecode. run.lua FILE DUMP [CODE]:
-- CODE runs between the load and the profile.

local sysprof = require "misc.sysprof"

local work = assert(loadfile(arg[1]))()
if arg[3] then assert(loadstring(arg[3]))() end
assert(sysprof.start {mode = "L", interval = 1, path = arg[2]})
work.run(1.2)
assert(sysprof.stop())
