-- SPDX-License-Identifier: MIT
-- Checks that each sample in a trace has the name of what ran at that time.
-- Arguments: perf script -F time,ip,sym (leaf only), the windows of flushes.lua.

local script_path, windows_path = arg[1], arg[2]

local windows = {}
for line in io.lines(windows_path) do
	local name, start, finish = line:match("^(%S+) (%S+) (%S+)$")
	windows[#windows + 1] = { name = name, start = tonumber(start),
		finish = tonumber(finish) }
end

-- Both are in the order of time.
local right, wrong, outside, at = 0, 0, 0, 1
for line in io.lines(script_path) do
	local time, name = line:match("^%s*([%d.]+):%s+%x+ TRACE_%d+ (gen_%d+)")
	time = tonumber(time)
	while time and windows[at] and windows[at].finish < time do
		at = at + 1
	end
	local found = time and windows[at]
	if found and found.start > time then
		found = nil
	end
	if found and found.name == name then
		right = right + 1
	elseif found then
		wrong = wrong + 1
		print("wrong: " .. line .. ", expected " .. found.name)
	elseif time then
		outside = outside + 1
	end
end
print(("%d functions, %d samples with their name, %d with another's, %d "
	.. "outside"):format(#windows, right, wrong, outside))
os.exit(#windows >= 10 and right >= 300 and wrong == 0
	and outside <= right / 100 and 0 or 1)
