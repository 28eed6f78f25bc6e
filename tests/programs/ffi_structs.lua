-- SPDX-License-Identifier: MIT
-- Particles in C structures, C calls and a callback.
local ffi = require "ffi"
ffi.cdef [[
	struct programs_particle { double x, y, vx, vy; int id; };
	int abs(int number);
	void qsort(void *base, size_t count, size_t bytes,
	           int (*compare)(const void *, const void *));
]]
local count = 50
local particles = ffi.new("struct programs_particle[?]", count)

local function start()
	for i = 0, count - 1 do
		local p = particles[i]
		p.x, p.y, p.vx, p.vy, p.id = i, count - i, i % 7 - 3, i % 5 - 2, i
	end
end

local function move(p, dt)
	p.x = p.x + p.vx * dt
	p.y = p.y + p.vy * dt
	if p.x < 0 or p.x > count then
		p.vx = -p.vx
	end
end

local function step(dt)
	for i = 0, count - 1 do
		move(particles[i], dt)
	end
end

local pointer = ffi.typeof("const struct programs_particle *")

local function compare(a, b)
	local x, y = ffi.cast(pointer, a).x, ffi.cast(pointer, b).x
	return x < y and -1 or x > y and 1 or 0
end
local callback = ffi.cast("int (*)(const void *, const void *)", compare)

local function sort()
	ffi.C.qsort(particles, count, ffi.sizeof("struct programs_particle"),
		callback)
end
jit.off(sort)

local function sum()
	local total = 0
	for i = 0, count - 1 do
		total = total + ffi.C.abs(particles[i].id - i)
	end
	return total
end

return function()
	start()
	for _ = 1, 40 do
		step(0.1)
	end
	sort()
	local total = sum()
	return string.format("%d %.4f", total, particles[0].x)
end
