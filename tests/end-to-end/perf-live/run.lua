-- SPDX-License-Identifier: MIT
-- Runs a program under the profiler, with names and stacks for perf too.
-- Arguments: the program, the dump to write, seconds of CPU time.
-- The program returns the function that is called over and over.

local program, dump, seconds = arg[1], arg[2], tonumber(arg[3])
local sysprof = require("misc").sysprof

local work = dofile(program)
assert(sysprof.start({ mode = "C", interval = 1, perf = true, path = dump }))
local finish = os.clock() + seconds
repeat
	work()
until os.clock() >= finish
assert(sysprof.stop())

local report = sysprof.report()
print(report.samples)
for reason, count in pairs(report.lost) do
	if count > 0 then
		io.stderr:write("lost, ", reason, ": ", count, "\n")
	end
end
