-- SPDX-License-Identifier: MIT
-- Conway's life.
local function new(w, h)
	local world = { w = w, h = h }
	for i = 0, w * h - 1 do
		world[i] = (i * 7 % 11 < 4) and 1 or 0
	end
	return world
end

local function at(world, x, y)
	return world[y % world.h * world.w + x % world.w]
end

local function neighbours(world, x, y)
	local count = 0
	for dy = -1, 1 do
		for dx = -1, 1 do
			if dx ~= 0 or dy ~= 0 then
				count = count + at(world, x + dx, y + dy)
			end
		end
	end
	return count
end

local function generation(world)
	local next_world = { w = world.w, h = world.h }
	for y = 0, world.h - 1 do
		for x = 0, world.w - 1 do
			local count = neighbours(world, x, y)
			local alive = at(world, x, y) == 1
			next_world[y * world.w + x] =
				(count == 3 or (alive and count == 2)) and 1 or 0
		end
	end
	return next_world
end

return function()
	local world = new(24, 16)
	for _ = 1, 6 do
		world = generation(world)
	end
	local alive = 0
	for i = 0, world.w * world.h - 1 do
		alive = alive + world[i]
	end
	return tostring(alive)
end
