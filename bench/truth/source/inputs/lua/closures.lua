local function counter(start) local n = start; return function(by) n = n + (by or 1); return n end, function() return n end end
local add, get = counter(10)
for i = 1, 20 do add(i) end
print(get())
local code = {}
for i = 1, 120 do code[#code + 1] = "local v" .. i .. " = " .. i .. " * 2; t[" .. i .. "] = function() return v" .. i .. " end" end
local chunk = assert(load("local t = {} " .. table.concat(code, "\n") .. " return t"))
local t, sum = chunk(), 0
for i = 1, 120 do sum = sum + t[i]() end
print(sum, load("return ... + 1")(41), load("x ="))
local dumped = string.dump(counter)
print(#dumped > 50, load(dumped, "d", "b")(5)(3))
print(math.tointeger(3.0), 7 // 2, -7 // 2, 7 % -3, 2 ^ 10, 1 << 62, 5 & 3 | 8 ~ 1, "10" + 5, 1e15, 0x7fffffffffffffff + 1)
print(string.pack(">I4 s2 z", 77, "abc", "de"):byte(1, -1))
print(utf8.char(228, 8364, 128512), utf8.len("äö€"), os.time({year = 2020, month = 1, day = 1, hour = 12}))
for a, b in utf8.codes("aä€") do io.write(a, "=", b, " ") end print()
