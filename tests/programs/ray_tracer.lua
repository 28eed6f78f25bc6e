-- SPDX-License-Identifier: MIT
-- Spheres, a light, shadows.
local spheres = {}
for i = 1, 5 do
	spheres[i] = { x = i * 1.5 - 4, y = (i % 3) - 1, z = 6 + i % 2, r = 0.9 }
end

local function dot(ax, ay, az, bx, by, bz)
	return ax * bx + ay * by + az * bz
end

local function hit(sphere, ox, oy, oz, dx, dy, dz)
	local x, y, z = ox - sphere.x, oy - sphere.y, oz - sphere.z
	local b = dot(x, y, z, dx, dy, dz)
	local d = b * b - dot(x, y, z, x, y, z) + sphere.r * sphere.r
	if d < 0 then
		return nil
	end
	local t = -b - math.sqrt(d)
	return t > 1e-4 and t or nil
end

local function nearest(ox, oy, oz, dx, dy, dz)
	local best, sphere
	for i = 1, #spheres do
		local t = hit(spheres[i], ox, oy, oz, dx, dy, dz)
		if t and (not best or t < best) then
			best, sphere = t, spheres[i]
		end
	end
	return best, sphere
end

local function shade(dx, dy, dz)
	local t, sphere = nearest(0, 0, 0, dx, dy, dz)
	if not t then
		return 0
	end
	local px, py, pz = dx * t, dy * t, dz * t
	local nx, ny, nz = (px - sphere.x) / sphere.r,
		(py - sphere.y) / sphere.r, (pz - sphere.z) / sphere.r
	local light = dot(nx, ny, nz, 0.57, 0.57, -0.57)
	if light < 0 or nearest(px, py, pz, 0.57, 0.57, -0.57) then
		return 0.1
	end
	return light
end

return function()
	local sum = 0
	for y = -12, 12 do
		for x = -20, 20 do
			local dx, dy = x / 20, y / 12
			local length = math.sqrt(dx * dx + dy * dy + 1)
			local value = shade(dx / length, dy / length, 1 / length)
			sum = sum + value
		end
	end
	return string.format("%.6f", sum)
end
