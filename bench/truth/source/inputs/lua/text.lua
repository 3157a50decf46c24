local csv = "name,age\nann,31\nbob,27\n\"c, d\",5\n"
for line in csv:gmatch("[^\n]+") do local fields = {} for f in (line .. ","):gmatch("([^,]*),") do fields[#fields + 1] = f:gsub("\"", "") end print(#fields, table.concat(fields, "|")) end
print(("abc"):byte(1, 3), ("%d items"):format(3), ("x"):rep(5), ("hello"):find("l+"), ("hello"):find(".", 1, true), ("key = value"):match("^(%w+)%s*=%s*(%w+)$"))
print(("THE (quick) fox"):find("%((%a+)%)"), ("f(a(b)c)d"):match("%b()"), ("THE (quick) fox"):gsub("%f[%a]%a+", string.lower))
print(("a,b,,c"):gsub(",", {[","] = ";"}), ("$x and $y"):gsub("%$(%w+)", {x = 1, y = 2}), ("abc"):gsub("", "-"))
local buffer = {} for i = 1, 500 do buffer[#buffer + 1] = string.char(97 + i % 26) end local s = table.concat(buffer) print(#s, s:sub(-5), s:upper():sub(3, 9), s:reverse():sub(1, 4))
print(#string.format("%s %q %5.2f %i %c %o %e %g %a", "a", "b\n", 3.14159, 7, 65, 8, 12345.678, 0.0001, 1.0))
local function tokens(text) local out = {} for kind, token in text:gmatch("()(%S+)") do out[#out + 1] = kind .. ":" .. token end return out end
print(table.concat(tokens("one  two three"), " "))
io.write("line\n") print(io.type(io.stdout), type(print))
