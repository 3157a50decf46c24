function Stack() { this.items = []; }
Stack.prototype.push = function () { for (var i = 0; i < arguments.length; ++i) this.items.push(arguments[i]); return this; };
Stack.prototype.toString = function () { return "stack of " + this.items.length; };
var s = new Stack().push(1, "two", [3, 4], { five: 5 });
print(s, s.items.slice(1, 3), JSON.stringify(s.items), s.items.indexOf("two"));
var list = [];
for (var i = 0; i < 80; ++i) list.push((i * 7919) % 101);
list.sort(function (a, b) { return a - b; });
print(list.join(" "), list.reverse().splice(3, 5), list.length);
try { null.x; } catch (e) { print("caught", e instanceof TypeError); }
var o = JSON.parse('{"a": [1, 2.5e3, "x\\u00e4y", null, true], "b": {"c": {}}}');
for (var k in o) print(k, typeof o[k], Object.keys(o[k]).length);
print([1, 2, 3, 4].filter(function (x) { return x % 2; }).map(function (x) { return x * x; }), [5, 6].concat([7], 8).reduce(function (a, b) { return a + b; }));
label: for (var a = 0; a < 5; ++a) { for (var b = 0; b < 5; ++b) { if (b === 3) continue label; if (a === 2) break label; } }
print(a, b, Math.max(1, 9, 3), parseInt("ff", 16), (255).toString(2), (3.14159).toFixed(2), 1 / 3);
with (o) { print(b.c); }
