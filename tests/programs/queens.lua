-- SPDX-License-Identifier: MIT
-- The n queens.
local function is_free(queens, row, column)
	for i = 1, row - 1 do
		local other = queens[i]
		if other == column or other - i == column - row or
			other + i == column + row then
			return false
		end
	end
	return true
end

local function place(queens, row, size)
	if row > size then
		return 1
	end
	local count = 0
	for column = 1, size do
		if is_free(queens, row, column) then
			queens[row] = column
			count = count + place(queens, row + 1, size)
		end
	end
	return count
end

return function()
	local count = place({}, 1, 7)
	assert(count == 40)
	return tostring(count)
end
