local seed = 12345
local function random(n) seed = (seed * 1103515245 + 12345) % 2147483648; return seed % n end
local list = {}
for i = 1, 500 do list[i] = random(1000) end
table.sort(list, function(a, b) return a > b end)
local ok = true
for i = 2, #list do ok = ok and list[i - 1] >= list[i] end
print(ok, list[1], list[250], list[500])
local grid = {}
for y = 1, 20 do grid[y] = {} for x = 1, 20 do grid[y][x] = (x * y) % 7 end end
table.move(grid, 3, 9, 12)
local total = 0
for _, row in ipairs(grid) do for _, v in ipairs(row) do total = total + v end end
print(total, #grid, table.unpack(grid[12], 1, 7))
local keys = {}
for i = 1, 300 do keys["k" .. i] = i; keys[i + 0.5] = -i end
for i = 1, 300, 3 do keys["k" .. i] = nil end
local n = 0
for k, v in pairs(keys) do n = n + v end
print(n)
