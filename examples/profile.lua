-- SPDX-License-Identifier: MIT
-- Profiles one Lua program:
--
--   luajit profile.lua PROGRAM [DUMP [perf]]
--
-- The dump (sysprof.bin unless named) is for luajit-parse-sysprof. With the
-- word "perf" the run can be recorded by `perf record -e
-- sdt_luajit_sysprof:sample -g` too. Prints what was counted on stderr.

local program, dump, perf = arg[1], arg[2] or "sysprof.bin", arg[3]
if not program or (perf and perf ~= "perf") or arg[4] then
	io.stderr:write("usage: luajit profile.lua PROGRAM [DUMP [perf]]\n")
	os.exit(2)
end

local misc = require "misc"
local run = assert(loadfile(program))

assert(misc.sysprof.start {
	mode = "C",            -- Lua and native stacks
	interval = 1,          -- milliseconds of CPU time
	path = dump,
	perf = perf == "perf",
})
local ok, message = pcall(run)
assert(misc.sysprof.stop())
if not ok then
	error(message, 0)
end

local report = misc.sysprof.report()
local states = {}
for state, count in pairs(report.vmstate) do
	if count > 0 then
		states[#states + 1] = ("%s %d"):format(state, count)
	end
end
table.sort(states)
io.stderr:write(("%d samples: %s\n"):format(report.samples,
                                            table.concat(states, ", ")))
