local t = {}
for i = 1, 200 do t[i] = (i * 7919) % 211 end
table.sort(t, function(a, b) return a > b end)
print(t[1], t[100], t[200], #t, select("#", table.unpack(t, 1, 50)))
for i = 1, 150 do table.remove(t, 1 + i % #t) end
table.insert(t, 3, "three") print(#t, t[3], table.concat({1, 2, 3}, ":"))
table.move(t, 1, 10, 5) print(t[5], t[14])
local weak = setmetatable({}, {__mode = "k"})
for i = 1, 300 do weak[{}] = i end
collectgarbage() print(next(weak))
local proxy = setmetatable({}, {__index = function(_, k) return k .. "!" end, __newindex = rawset, __len = function() return 42 end, __call = function(_, a, b) return a + b end})
proxy.x = 5 print(proxy.x, proxy.y, #proxy, proxy(3, 4), rawlen(proxy))
local m = {} for i = 1, 20 do m[i] = {} for j = 1, 20 do m[i][j] = i * j end end
local s = 0 for _, row in ipairs(m) do for _, v in ipairs(row) do s = s + v end end print(s)
for k in pairs({a = 1}) do print(k) end
print(table.pack(1, nil, 3).n, next({}), type(next), rawequal(t, t))
goto done
print("skipped")
::done::
