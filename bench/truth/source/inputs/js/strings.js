var text = "The quick brown fox jumps over the lazy dog";
print(text.replace(/(\w)(\w*)/g, "$2$1"), text.split(/\s+/), text.match(/o\w/g), text.search(/fox/));
print(text.toUpperCase().charAt(4), text.substring(4, 9), text.lastIndexOf("o"), text.slice(-3), encodeURIComponent("a b&c"), decodeURIComponent("%41%20b"));
print("a-b-c".split("-", 2), "  trim ".trim(), "x".concat("y", 1), "abc".charCodeAt(1), String.fromCharCode(65, 228, 8364));
print(/^(?:a|b)*?c(?=d)/.exec("abacd"), /(\d+)-\1/.test("12-12"), /[^a-c]{2,4}/i.exec("abcDEFG")[0]);
function counter() { var n = 0; return { add: function (x) { return n += x; } }; }
var c = counter(); for (var i = 0; i < 20; ++i) c.add(i); print(c.add(0));
var parts = []; for (var j = 0; j < 60; ++j) parts.push("v" + j + "=" + j * j); print(parts.join("&").length);
print(new Date(0).toISOString(), isNaN("x"), [] + {}, typeof undefined, void 0, ~5, 1 << 4, -1 >>> 28);
switch (text.length) { case 1: print("one"); break; case 43: print("forty-three"); default: print("and on"); }
print(Object.getOwnPropertyNames({ x: 1, y: 2 }), Function("a", "b", "return a * b")(6, 7), eval("1 + 2"));
var deep = []; for (var d = 0; d < 30; ++d) deep = [deep, d]; print(JSON.stringify(deep).length);
