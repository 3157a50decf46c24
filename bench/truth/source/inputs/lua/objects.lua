local Stack = {}
Stack.__index = Stack
Stack.__tostring = function(s) return "stack of " .. #s.items end
function Stack.new() return setmetatable({items = {}}, Stack) end
function Stack:push(...) for _, v in ipairs({...}) do self.items[#self.items + 1] = v end return self end
function Stack:pop() return table.remove(self.items) end
local s = Stack.new():push(1, 2, 3, "four", {5})
print(tostring(s), type(s:pop()), s:pop(), s:pop())
local function range(n) return coroutine.wrap(function() for i = 1, n do coroutine.yield(i, i * i) end end) end
for i, q in range(8) do io.write(i, ":", q, " ") end print()
print(pcall(error, {code = 7}), select("#", table.unpack({1, nil, 3}, 1, 3)))
print(pcall(function() local x = nil; return x.y end))
local weak = setmetatable({}, {__mode = "k"})
for i = 1, 200 do weak[{}] = i end
collectgarbage() collectgarbage()
print(next(weak), collectgarbage("count") > 0)
goto done
print("not reached")
::done::
