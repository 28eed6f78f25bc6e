-- SPDX-License-Identifier: MIT
-- Lua API on the LuaJIT that runs this: every use and misuse of it, with the
-- exact answers. Run by lua-api.sh in a directory of its own.

local EINVAL, ENOENT, EISDIR, ENOSPC, EBUSY = 22, 2, 21, 28, 16
local ffi = require "ffi"

ffi.cdef [[
typedef struct { unsigned long bits[16]; } sigset_t;
int sigemptyset(sigset_t *set);
int sigaddset(sigset_t *set, int signal);
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
typedef int (*sighandler_t)(int);
sighandler_t signal(int, sighandler_t);
int abs(int);
]]

-- ---- small tools ----------------------------------------------------------

local function show(...)
	local texts = {}
	for i = 1, select("#", ...) do
		texts[i] = tostring((select(i, ...)))
	end
	return table.concat(texts, ", ")
end

-- Calls f(...) and compares its first three results with those expected.
local function expect(expected, f, ...)
	local got = {f(...)}
	for i = 1, 3 do
		if got[i] ~= expected[i] then
			error(("expected %s\n     got %s"):format(
				show(unpack(expected, 1, 3)),
				show(unpack(got, 1, 3))), 2)
		end
	end
end

local function refused(message, errno, f, ...)
	local result, got_message, got_errno = f(...)
	if result ~= nil or got_message ~= message or got_errno ~= errno then
		error(("expected nil, %s, %d\n     got %s"):format(message, errno,
			show(result, got_message, got_errno)), 2)
	end
end

local function contents(path)
	local file = io.open(path, "rb")
	if not file then
		return nil
	end
	local bytes = file:read("*a")
	file:close()
	return bytes
end

local function write(path, bytes)
	local file = assert(io.open(path, "wb"))
	file:write(bytes)
	file:close()
end

local function burn(seconds)
	local start, sum = os.clock(), 0
	repeat
		for i = 1, 10000 do
			sum = sum + i % 7
		end
	until os.clock() - start > seconds
	return sum
end

local function is_whole_dump(bytes)
	return bytes:sub(1, 15) == "ljs\3\0\0\0\128ljp\2\0\0\0" and
		bytes:byte(-1) == 0x80
end

-- ---- loading ---------------------------------------------------------------

assert(rawget(_G, "misc") == nil)
local misc = require "misc"
assert(rawget(_G, "misc") == misc, "the global misc is set")
assert(require "misc.sysprof" == misc.sysprof)
local sysprof = misc.sysprof
for _, name in ipairs {"start", "stop", "report", "available", "label"} do
	assert(type(sysprof[name]) == "function", name)
end
expect({true}, sysprof.available)

-- ---- before the first start --------------------------------------------------

local STATES = {"INTERP", "LFUNC", "FFUNC", "CFUNC", "GC", "EXIT", "RECORD",
                "OPT", "ASM", "TRACE"}

local function check_report(report)
	local sum = 0
	for _, state in ipairs(STATES) do
		assert(type(report[state]) == "number", state)
		assert(report[state] == report.vmstate[state], state)
		sum = sum + report[state]
	end
	assert(report.samples == sum, "samples is the sum of the states")
	for name in pairs(report.vmstate) do
		assert(report[name], name)
	end
	local lost = 0
	for reason, count in pairs(report.lost) do
		lost = lost + (reason == "total" and 0 or count)
	end
	assert(report.lost.total == lost)
	assert(type(report.incomplete["[truncated]"]) == "number")
	return report
end

local report = check_report(sysprof.report())
assert(report.samples == 0 and report.running == false)
assert(report.clock == nil and report.interval == nil)
check_report(sysprof.report("any", {}, "arguments"))
refused("profiler is not running", EINVAL, sysprof.stop)
refused("profiler is not running", EINVAL, sysprof.stop, "ignored", 1)

-- ---- options that are refused -------------------------------------------------

local function start_refused(message, ...)
	refused(message, EINVAL, sysprof.start, ...)
end

local NOT_A_TABLE = "the options must be a table with any of mode, " ..
	"interval, clock, kernel, path, rotate, rotate_limit, scope, fork, " ..
	"overhead, signal, perf, perf_dir, perf_unwind, got "
start_refused(NOT_A_TABLE .. '"D"', "D")
start_refused(NOT_A_TABLE .. "1", 1)
start_refused(NOT_A_TABLE .. "true", true)
start_refused(NOT_A_TABLE .. "a function", print)

local MODE = 'mode must be "D", "L" or "C", got '
start_refused(MODE .. '""', {mode = ""})
start_refused(MODE .. '"DD"', {mode = "DD"})
start_refused(MODE .. '"d"', {mode = "d"})
start_refused(MODE .. '"A"', {mode = "A"})
start_refused(MODE .. '"D?x"', {mode = "D\0x"})
start_refused(MODE .. "1", {mode = 1})
start_refused(MODE .. "false", {mode = false})
start_refused(MODE .. "a table", {mode = {}})
start_refused(MODE .. '"' .. ("m"):rep(40) .. '"...', {mode = ("m"):rep(5000)})

local INTERVAL = "interval must be a positive number of milliseconds, got "
start_refused(INTERVAL .. '"fast"', {interval = "fast"})
start_refused(INTERVAL .. '"10"', {interval = "10"})
start_refused(INTERVAL .. "true", {interval = true})
start_refused(INTERVAL .. "0", {interval = 0})
start_refused(INTERVAL .. "-1", {interval = -1})
start_refused(INTERVAL .. "nan", {interval = 0 / 0})
start_refused(INTERVAL .. "inf", {interval = 1 / 0})
start_refused(INTERVAL .. "-inf", {interval = -1 / 0})
local RANGE = "interval must be from 0.01 to 3600000 milliseconds, got "
start_refused(RANGE .. "0.001", {interval = 0.001})
start_refused(RANGE .. "2147483648", {interval = 2 ^ 31})
start_refused(RANGE .. "1e+300", {interval = 1e300})

for _, mode in ipairs {"L", "C"} do
	start_refused("path must be a string, got 1", {mode = mode, path = 1})
	start_refused("path must be a string, got true",
		{mode = mode, path = true})
	start_refused("path must be the name of a file without NUL bytes, " ..
		'got ""', {mode = mode, path = ""})
	start_refused("path must be the name of a file without NUL bytes, " ..
		'got "a?b"', {mode = mode, path = "a\0b"})
end
assert(not contents("a"), "nothing was created for a refused path")

local PERF = 'perf must be true, false, "map", "lines" or "jitdump", got '
start_refused(PERF .. '"yes"', {perf = "yes"})
start_refused(PERF .. "1", {mode = "C", perf = 1})
local PERF_DIR = "perf_dir must be the name of a directory for the jitdump, got "
start_refused(PERF_DIR .. '""', {perf_dir = ""})
start_refused(PERF_DIR .. "true", {perf_dir = true})
start_refused('perf_unwind must be "mapped", "file" or "off", got "on"',
	{perf_unwind = "on"})
start_refused('perf needs mode "L" or "C": mode "D" takes no stacks',
	{mode = "D", perf = true})

start_refused('scope must be "vm" or "process", got "all"', {scope = "all"})
start_refused('fork must be "stop" or "follow", got 1', {fork = 1})
start_refused("overhead must be from 0.1 to 100 percent of the thread's " ..
	"time, got 0", {overhead = 0})
start_refused('signal must be "SIGPROF", "SIGURG", "SIGUSR1", "SIGUSR2" or ' ..
	'"SIGIO", got "SIGKILL"', {signal = "SIGKILL"})

local ROTATE = 'rotate must be seconds, at least 1, a time such as "10min" ' ..
	'or "1h", or bytes such as "64M", at least "64K", got '
start_refused(ROTATE .. "0.5", {mode = "C", rotate = 0.5})
start_refused(ROTATE .. '"1x"', {mode = "C", rotate = "1x"})
start_refused(ROTATE .. '"63K"', {mode = "C", rotate = "63K"})
start_refused(ROTATE .. "true", {mode = "C", rotate = true})
start_refused('rotate_limit must be the bytes of all dumps, such as "500M" ' ..
	'or "2G", and at least "1M", got 5', {mode = "C", rotate_limit = 5})
start_refused('rotate needs mode "L" or "C": mode "D" writes no dump',
	{rotate = 1})

start_refused("kernel must be true or false, got 1", {mode = "C", kernel = 1})
start_refused('kernel needs mode "C": others have no native stacks',
	{mode = "L", kernel = true})
start_refused('kernel needs another clock than "wall", whose timer does not ' ..
	'tell what the kernel does; "context-switches" tells what blocks',
	{mode = "C", clock = "wall", kernel = true})

local UNKNOWN = "unknown option %s; the options are mode, interval, clock, " ..
	"kernel, path, rotate, rotate_limit, scope, fork, overhead, signal, " ..
	"perf, perf_dir, perf_unwind"
start_refused(UNKNOWN:format('"intervall"'), {mode = "D", intervall = 1})
start_refused(UNKNOWN:format("1"), {"D"})
start_refused(UNKNOWN:format("a table"), {[{}] = 1})

-- Options are read raw: no metamethod of the caller runs.
start_refused(MODE .. "false", setmetatable({mode = false},
	{__index = error, __newindex = error}))

-- ---- labels -------------------------------------------------------------------

local LABEL = "label must be a string, or nil for none, got "
refused(LABEL .. "3", EINVAL, sysprof.label, 3)
refused(LABEL .. "false", EINVAL, sysprof.label, false)
refused(LABEL .. "a table", EINVAL, sysprof.label, {})
refused(LABEL .. "a function", EINVAL, sysprof.label, print)
expect({true}, sysprof.label)
expect({true}, sysprof.label, nil, "ignored")
for _, text in ipairs {"", "/search", "\0", ("x"):rep(100000), "\255;\n"} do
	expect({true}, sysprof.label, text)
	expect({true}, coroutine.wrap(sysprof.label), text)
end
expect({true}, sysprof.label, nil)
expect({true}, sysprof.label, nil)

-- ---- files that are refused ----------------------------------------------------

for _, mode in ipairs {"L", "C"} do
	refused("/nowhere/x.bin: No such file or directory", ENOENT,
		sysprof.start, {mode = mode, path = "/nowhere/x.bin"})
	refused("/tmp: Is a directory", EISDIR,
		sysprof.start, {mode = mode, path = "/tmp"})
	refused("/dev/full: No space left on device", ENOSPC,
		sysprof.start, {mode = mode, path = "/dev/full"})
end
assert(sysprof.report().samples == 0)
refused("profiler is not running", EINVAL, sysprof.stop)
expect({true}, sysprof.available)

-- ---- mode D ---------------------------------------------------------------------

local function count_samples(options, seconds)
	expect({true}, sysprof.start, options)
	burn(seconds)
	expect({true}, sysprof.stop)
	return check_report(sysprof.report())
end

for _, options in ipairs {{}, {mode = "D"}, {mode = "D", path = 1}} do
	report = count_samples(options, 0.3)
	assert(report.samples >= 5, report.samples)
	assert(report.interval == 10)
end
expect({true}, sysprof.start)
expect({true}, sysprof.stop)
expect({true}, sysprof.start, nil, "ignored")
expect({true}, sysprof.stop, "ignored")
expect({true}, sysprof.start, {interval = 3600000})
expect({true}, sysprof.stop)
assert(not contents("sysprof.bin"), "mode D writes no file")

-- Fractions are kept: nearer to the asked interval than to a whole one. Timers
-- are no faster than the kernel's tick, which is no fault of ours.
report = count_samples({interval = 1.7}, 1)
assert(report.interval == 1.7)
if report.clock == "perf task clock" then
	assert(report.samples > 1000 / 1.7 * 0.85, report.samples)
	assert(report.samples < 1000 / 1.7 * 1.15, report.samples)
	report = count_samples({interval = 0.1}, 0.5)
	assert(report.samples > 5000 * 0.7, report.samples)
	-- The limit of the handler's share (5 % of 0.1 ms) is not judged by the
	-- first samples, which are slow.
	report = count_samples({mode = "C", interval = 0.1}, 0.5)
	assert(report.samples > 5000 * 0.7 or report.handler_ns > 5000,
		report.samples .. " by " .. report.handler_ns .. " ns each")
	os.remove("sysprof.bin")
end

-- ---- modes L and C ----------------------------------------------------------------

for _, mode in ipairs {"L", "C"} do
	expect({true}, sysprof.start, {mode = mode, interval = 1})
	burn(0.2)
	expect({true}, sysprof.stop)
	assert(is_whole_dump(contents("sysprof.bin")), "default path")
	os.remove("sysprof.bin")

	write("own.bin", ("x"):rep(1000000))
	expect({true}, sysprof.start, {mode = mode, path = "own.bin"})
	expect({true}, sysprof.stop)
	local bytes = contents("own.bin")
	assert(is_whole_dump(bytes) and #bytes < 100000, "file is emptied")
	assert(not contents("sysprof.bin"))
end

-- ---- a second start ------------------------------------------------------------------

expect({true}, sysprof.start, {mode = "C", path = "first.bin", interval = 1})
burn(0.3)
write("other.bin", "precious")
local before = contents("first.bin")
local samples = sysprof.report().samples
for _, options in ipairs {
	{mode = "C", path = "first.bin"}, {mode = "L", path = "other.bin"},
	{mode = "C", path = "new.bin"}, {mode = "D"},
} do
	refused("profiler is running already", EINVAL, sysprof.start, options)
end
refused("profiler is running already", EINVAL, sysprof.start)
start_refused(MODE .. '"X"', {mode = "X", path = "new.bin"})
assert(contents("other.bin") == "precious")
assert(contents("new.bin") == nil)
assert(contents("first.bin"):sub(1, #before) == before)
report = check_report(sysprof.report())
assert(report.running and report.samples >= samples)
burn(0.3)
assert(sysprof.report().samples > samples + 10, "the first one goes on")
expect({true}, sysprof.available)

-- Any coroutine may stop it, and stopped is stopped.
expect({true}, coroutine.wrap(function()
	return sysprof.stop()
end))
refused("profiler is not running", EINVAL, sysprof.stop)
samples = sysprof.report().samples
burn(0.2)
report = check_report(sysprof.report())
assert(report.samples == samples and not report.running)
assert(is_whole_dump(contents("first.bin")))

-- It leaves nothing in the VM that matters: garbage of an old guard neither
-- ends a new profile nor fails.
for _ = 1, 20 do
	expect({true}, sysprof.start, {mode = "D"})
	collectgarbage()
	expect({true}, sysprof.stop)
	collectgarbage()
end
expect({true}, sysprof.start, {mode = "D"})
collectgarbage()
collectgarbage()
assert(sysprof.report().running)
expect({true}, sysprof.stop)

-- ---- other users of the signal ---------------------------------------------------------------

local profile = require "jit.profile"
profile.start("i10", function() end)
expect({true}, sysprof.available)
expect({true}, sysprof.start, {mode = "D"})
expect({true}, sysprof.stop)
refused("SIGPROF has a handler already: another profiler (such as jit.p) is " ..
	"active in this process; stop it first, or choose another signal by " ..
	"the option signal", EBUSY, sysprof.start, {signal = "SIGPROF"})
-- Without SIGURG there is SIGPROF alone.
local SIGURG, handler = 23, ffi.cast("sighandler_t", ffi.C.abs)
local before = ffi.C.signal(SIGURG, handler)
local available, reason = sysprof.available()
assert(available == false)
assert(reason:find("SIGPROF has a handler already", 1, true) == 1, reason)
refused("SIGPROF has a handler already: another profiler (such as jit.p) is " ..
	"active in this process; stop it first, or choose another signal by " ..
	"the option signal", EBUSY, sysprof.start)
profile.stop()
expect({true}, sysprof.available)
expect({true}, sysprof.start, {mode = "D"})
assert(ffi.C.signal(SIGURG, before) == handler)
expect({true}, sysprof.stop)

local set = ffi.new("sigset_t")
local SIGPROF, SIG_BLOCK, SIG_UNBLOCK = 27, 0, 1
ffi.C.sigemptyset(set)
ffi.C.sigaddset(set, SIGPROF)
ffi.C.pthread_sigmask(SIG_BLOCK, set, nil)
refused("SIGPROF is blocked on this thread, so no sample would arrive; " ..
	"unblock it with pthread_sigmask()", EINVAL, sysprof.start,
	{signal = "SIGPROF"})
expect({true}, sysprof.start, {mode = "D"})
expect({true}, sysprof.stop)
ffi.C.pthread_sigmask(SIG_UNBLOCK, set, nil)

-- And after us it works again, in this process.
local seen = 0
profile.start("i10", function() seen = seen + 1 end)
burn(0.3)
profile.stop()
assert(seen > 0, "jit.profile works after a profile of ours")
expect({true}, sysprof.start)
expect({true}, sysprof.stop)

-- Neither a trace of ours nor an event of one gets into the VM.
local traces = require "jit.util".traceinfo
local function count_traces()
	local count = 0
	for number = 1, 1000 do
		if traces(number) then count = count + 1 end
	end
	return count
end
jit.off()
jit.flush()
assert(count_traces() == 0)
local events = {}
local function note(what) events[#events + 1] = what end
jit.attach(note, "trace")
for _, options in ipairs {{mode = "D"}, {mode = "C", path = "traces.bin"},
	{mode = "C", path = "traces.bin", scope = "process"}} do
	jit.on()
	local ok, message = sysprof.start(options)
	local stopped = sysprof.stop()
	jit.off()
	assert(ok and stopped, message)
end
jit.on()
assert(sysprof.available())
assert(misc.memprof.start("traces.bin"))
assert(misc.memprof.stop())
jit.off()
jit.attach(note)
assert(#events == 0 and count_traces() == 0,
	#events .. " events, " .. count_traces() .. " traces")
jit.on()

print("ok")
