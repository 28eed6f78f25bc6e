-- SPDX-License-Identifier: MIT
-- Ways to record a program, compared within one process: short blocks of the same
-- work, plain and under each way, one after another in each round. What the machine
-- does besides changes slower than that, so that the ratio of two neighbours tells
-- of the way, and the median over many rounds of little else.
local ffi = require("ffi")
local paired = {}

ffi.cdef [[
	struct bench_timespec { long tv_sec, tv_nsec; };
	int clock_gettime(int clock, struct bench_timespec *now);
	int getpid(void);
	int mkfifo(const char *path, unsigned mode);
]]
local CLOCK_MONOTONIC, BLOCK_SECONDS = 1, 0.15
local now = ffi.new("struct bench_timespec")

-- Seconds that this thread had a CPU: those by the clock without those in line for
-- one. Its CPU time would leave out interrupts, where much of the work is done.
function paired.thread_seconds()
	local file = assert(io.open("/proc/thread-self/schedstat"))
	local _, in_line_ns = file:read("*n", "*n")
	file:close()
	ffi.C.clock_gettime(CLOCK_MONOTONIC, now)
	return tonumber(now.tv_sec) + (tonumber(now.tv_nsec) - in_line_ns) / 1e9
end

-- A perf record of this process with the options, which records between start()
-- and stop(); name is that of its files. close() ends it and returns its samples.
function paired.perf(name, options)
	local control_path, answer_path = name .. ".control", name .. ".answer"
	for _, path in ipairs { control_path, answer_path } do
		assert(ffi.C.mkfifo(path, tonumber("600", 8)) == 0, path)
	end
	local perf = os.getenv("PERF") or "perf"
	assert(os.execute(("(%s record -q -o %s.data -p %d -D -1 %s "
		.. "--control=fifo:%s,%s >%s.log 2>&1; : >%s.ended) &"):format(
		perf, name, ffi.C.getpid(), options, control_path, answer_path,
		name, name)) == 0)
	local control = assert(io.open(control_path, "r+"))
	local answer = assert(io.open(answer_path, "r+"))
	control:setvbuf("no")
	local function ask(command)
		-- In one write: perf takes what is there for a whole command.
		control:write(command .. "\n")
		assert(answer:read(#"ack\n" + 1) == "ack\n\0", command)
	end
	ask("disable")
	return {
		start = function() ask("enable") end,
		stop = function() ask("disable") end,
		close = function()
			ask("stop")
			local report = io.popen(("while [ ! -e %s.ended ]; do sleep 0.1; "
				.. "done; %s report -i %s.data --stats"):format(name, perf,
				name))
			local samples = report:read("*a"):match("SAMPLE events: *(%d+)")
			report:close()
			return tonumber(samples)
		end,
	}
end

local function quantile(sorted, share)
	return sorted[math.max(1, math.ceil(share * #sorted))]
end

-- How many times run() fits into the seconds.
local function count_runs(run, seconds)
	local start, count = paired.thread_seconds(), 0
	repeat
		run()
		count = count + 1
	until paired.thread_seconds() - start > seconds
	return count
end

-- Runs run() in blocks: plain and under each of the ways, which have start() and
-- stop(). Returns for each way the quartiles of its time against the plain block of
-- the same round, and seconds, the time under it.
function paired.compare(ways, rounds, run)
	run()
	local count = count_runs(run, BLOCK_SECONDS)
	local function block()
		local before = paired.thread_seconds()
		for _ = 1, count do
			run()
		end
		return paired.thread_seconds() - before
	end
	local ratios, seconds = {}, {}
	for i = 1, #ways do
		ratios[i], seconds[i] = {}, 0
	end
	for round = 1, rounds do
		for turn = 1, #ways do
			local i = (round + turn) % #ways + 1
			local before = block()
			ways[i].start()
			-- Not what the beginning costs: memory that is touched for the
			-- first time, functions that are met.
			local beginning = block()
			local recorded = block()
			ways[i].stop()
			table.insert(ratios[i], 2 * recorded / (before + block()))
			seconds[i] = seconds[i] + beginning + recorded
		end
	end
	local results = {}
	for i = 1, #ways do
		table.sort(ratios[i])
		results[i] = {
			low = quantile(ratios[i], 0.25),
			median = quantile(ratios[i], 0.5),
			high = quantile(ratios[i], 0.75),
			seconds = seconds[i],
		}
	end
	return results
end

return paired
