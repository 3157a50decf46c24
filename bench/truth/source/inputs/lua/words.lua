local text = string.rep("the quick brown fox jumps over the lazy dog ", 40)
local count = {}
for word in text:gmatch("%a+") do count[word] = (count[word] or 0) + 1 end
local names = {}
for word in pairs(count) do names[#names + 1] = word end
table.sort(names)
for _, n in ipairs(names) do print(n, count[n], n:upper():reverse(), #n) end
print(text:gsub("(%w+) (%w+)", "%2 %1", 3):sub(1, 60))
print(string.format("%5d|%-8s|%08.3f|%x|%q", 42, "ab", 3.14159, 255, "a\nb\0c"))
print(("x"):rep(300, ","):len(), table.concat(names, "-", 2, 5))
