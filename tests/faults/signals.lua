-- SPDX-License-Identifier: MIT
-- What the host does to our signal and its timer while it is profiled: it keeps what it
-- has set, is not bothered by our signals, and the profile says what it has missed.
--
-- usage: signals.lua LIBRARY CASE
local sysprof = require "misc.sysprof"
local ffi = require "ffi"
ffi.cdef [[
int host_take(int, int); int host_set(int, void *); int host_give_back(int);
int host_has(int); int host_is_free(int); int host_calls(void);
typedef struct { unsigned long words[16]; } signal_set;
int pthread_sigmask(int, const signal_set *, signal_set *);
int signalfd(int, const signal_set *, int); int close(int);
typedef struct { long interval_s, interval_us, s, us; } timer_value;
int setitimer(int, const timer_value *, timer_value *);
int getitimer(int, timer_value *);
int fork(void); int waitpid(int, int *, int); void _exit(int);
]]
local host = ffi.load(arg[1])
local C = ffi.C
local SIGURG, SIGPROF, ITIMER_PROF = 23, 27, 2

local function work(seconds)
	local start, sum = os.clock(), 0
	repeat
		for i = 1, 10000 do sum = sum + i % 7 end
	until os.clock() - start > seconds
	return sum
end

-- Until the condition holds, but for no more than some 20 s of CPU time: a thread of the
-- profiler may wait long for a CPU.
local function work_until(condition)
	local start = os.clock()
	repeat work(0.1) until condition() or os.clock() - start > 20
	assert(condition(), "it does not happen")
end

local function start(more)
	local options = { mode = "C", interval = 1, path = "signals.bin" }
	for name, value in pairs(more or {}) do options[name] = value end
	assert(sysprof.start(options))
	work(0.2)
	assert(sysprof.report().samples > 5)
	assert(not sysprof.report().signal_replaced)
end

local function lost(reason)
	return sysprof.report().lost[reason]
end

-- Our signals no longer come; what the threads would have sampled counts as lost.
local function expect_silence()
	work_until(function()
		return lost "signal handler replaced" >= 20
	end)
	assert(sysprof.report().signal_replaced)
	local samples, calls = sysprof.report().samples, host.host_calls()
	local missed = lost "signal handler replaced"
	work(0.5)
	assert(sysprof.report().samples == samples)
	assert(host.host_calls() == calls, "the host gets our signals")
	assert(lost "signal handler replaced" > missed)
end

local function expect_samples()
	local samples = sysprof.report().samples
	work_until(function()
		return sysprof.report().samples >= samples + 20
	end)
	assert(not sysprof.report().signal_replaced)
end

local cases = {}

function cases.taken()
	for _, scope in ipairs { "vm", "process" } do
		start { scope = scope }
		host.host_take(SIGURG, 0)
		expect_silence()
		host.host_give_back(SIGURG)
		expect_samples()
		host.host_take(SIGURG, 0)
		expect_silence()
		assert(sysprof.stop())
		assert(host.host_has(SIGURG) == 1, "it was taken away")
		assert(lost "signal handler replaced" > 20)
		-- Another one has another signal, or none.
		start { signal = "SIGUSR1" }
		assert(sysprof.stop())
		local ok, message, code = sysprof.start { signal = "SIGURG" }
		assert(not ok and code == 16, message)
		assert(host.host_has(SIGURG) == 1)
		-- What it gives back is our handler, which does no harm, nor
		-- stays for good.
		host.host_give_back(SIGURG)
		start { signal = "SIGURG" }
		assert(sysprof.stop())
		assert(host.host_is_free(SIGURG) == 1)
	end
end

function cases.ignored()
	start()
	host.host_set(SIGURG, ffi.cast("void *", 1))
	expect_silence()
	host.host_give_back(SIGURG)
	expect_samples()
	assert(sysprof.stop())
	assert(host.host_is_free(SIGURG) == 1)
end

function cases.passed_on()
	start()
	host.host_take(SIGURG, 1)
	work(0.5)
	local samples = sysprof.report().samples
	work_until(function()
		return sysprof.report().samples >= samples + 100
	end)
	assert(lost "signal handler replaced" == 0)
	assert(host.host_calls() > 100)
	assert(sysprof.stop())
	assert(host.host_has(SIGURG) == 1)
end

-- Nobody looks but report() and stop().
function cases.no_writer()
	start { mode = "D" }
	host.host_take(SIGURG, 0)
	assert(sysprof.report().signal_replaced)
	expect_silence()
	host.host_give_back(SIGURG)
	expect_samples()
	host.host_take(SIGURG, 0)
	assert(sysprof.stop())
	assert(sysprof.report().signal_replaced)
	assert(host.host_has(SIGURG) == 1)
end

-- The VM's own profiler takes SIGPROF and its timer, and gives them back.
function cases.jit_p()
	start { signal = "SIGPROF" }
	local profile = require "jit.profile"
	profile.start("i1", function() end)
	expect_silence()
	profile.stop()
	expect_samples()
	assert(sysprof.stop())
	assert(host.host_is_free(SIGPROF) == 1)
end

-- With the timer of the process: it has but one.
function cases.process_timer()
	local value = ffi.new("timer_value")
	start()
	assert(sysprof.report().clock == "process timer")
	host.host_take(SIGPROF, 0)
	expect_silence()
	C.getitimer(ITIMER_PROF, value)
	assert(value.s == 0 and value.us == 0)
	-- The host starts a timer of its own, which stays when ours ends.
	local own = ffi.new("timer_value", 0, 7000, 0, 7000)
	C.setitimer(ITIMER_PROF, own, nil)
	work(0.3)
	host.host_give_back(SIGPROF)
	work(0.3)
	host.host_take(SIGPROF, 0)
	assert(sysprof.stop())
	C.getitimer(ITIMER_PROF, value)
	assert(value.interval_us >= 7000 and value.interval_us <= 8000)
	C.setitimer(ITIMER_PROF, ffi.new("timer_value"), nil)
	host.host_give_back(SIGPROF)
	-- The same while our handler is still there.
	start()
	C.setitimer(ITIMER_PROF, own, nil)
	assert(sysprof.stop())
	C.getitimer(ITIMER_PROF, value)
	assert(value.interval_us >= 7000 and value.interval_us <= 8000)
	C.setitimer(ITIMER_PROF, ffi.new("timer_value"), nil)
end

-- signalfd(2) needs it blocked.
function cases.blocked()
	local set = ffi.new("signal_set")
	set.words[0] = bit.lshift(1, SIGURG - 1)
	start { scope = "process" }
	assert(C.pthread_sigmask(0, set, nil) == 0)
	local fd = C.signalfd(-1, set, 0)
	assert(fd >= 0)
	work_until(function() return lost "signal blocked" >= 20 end)
	assert(sysprof.report().blocked_threads == 1)
	C.close(fd)
	assert(C.pthread_sigmask(1, set, nil) == 0)
	expect_samples()
	assert(sysprof.report().blocked_threads == 0)
	assert(sysprof.stop())
end

-- Code that blocks it for a moment each time loses nothing.
function cases.blocked_shortly()
	local set = ffi.new("signal_set")
	set.words[0] = bit.lshift(1, SIGURG - 1)
	start()
	for _ = 1, 400 do
		C.pthread_sigmask(0, set, nil)
		work(0.001)
		C.pthread_sigmask(1, set, nil)
		work(0.0001)
	end
	assert(sysprof.stop())
	assert(lost "signal blocked" < 20, lost "signal blocked")
end

-- A child that would be profiled as well leaves the host's handler alone.
function cases.child()
	start { fork = "follow" }
	host.host_take(SIGURG, 0)
	local child = C.fork()
	if child == 0 then
		local ok = host.host_has(SIGURG) == 1 and
			not sysprof.report().running
		C._exit(ok and 0 or 1)
	end
	local status = ffi.new("int[1]")
	C.waitpid(child, status, 0)
	assert(status[0] == 0, "the child has lost its handler")
	assert(sysprof.stop())
	assert(host.host_has(SIGURG) == 1)
end

cases[arg[2]]()
