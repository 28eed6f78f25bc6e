-- SPDX-License-Identifier: MIT
-- Multiplies and inverts matrices.
local function identity(n)
	local m = {}
	for i = 1, n do
		m[i] = {}
		for j = 1, n do
			m[i][j] = i == j and 1 or 0
		end
	end
	return m
end

local function multiply(a, b)
	local n, c = #a, {}
	for i = 1, n do
		local row = {}
		for j = 1, n do
			local x = 0
			for k = 1, n do
				x = x + a[i][k] * b[k][j]
			end
			row[j] = x
		end
		c[i] = row
	end
	return c
end

local function eliminate(m, inverse, row, column, factor)
	for j = 1, #m do
		m[row][j] = m[row][j] - factor * m[column][j]
		inverse[row][j] = inverse[row][j] - factor * inverse[column][j]
	end
end

local function scale(m, inverse, row, factor)
	for j = 1, #m do
		m[row][j] = m[row][j] * factor
		inverse[row][j] = inverse[row][j] * factor
	end
end

local function invert(source)
	local m = multiply(source, identity(#source))
	local inverse = identity(#source)
	for column = 1, #m do
		scale(m, inverse, column, 1 / m[column][column])
		for row = 1, #m do
			if row ~= column then
				eliminate(m, inverse, row, column, m[row][column])
			end
		end
	end
	return inverse
end

return function()
	local m = identity(12)
	for i = 1, 12 do
		for j = 1, 12 do
			m[i][j] = m[i][j] * 20 + (i * j) % 7
		end
	end
	local product = multiply(m, (invert(m)))
	local trace = 0
	for i = 1, 12 do
		trace = trace + product[i][i]
	end
	return string.format("%.6f", trace)
end
