var lines = "2001-02-03 alpha=1; beta=22\n2004-05-06 gamma=333\n\nlast line without a date".split("\n");
for (var i = 0; i < lines.length; i++) {
	var m = /^(\d{4})-(\d\d)-(\d\d)\s+(.*)$/.exec(lines[i]);
	print(i, m ? m.slice(1).join("/") : "no match");
	print(lines[i].replace(/(\w+)=(\d+)/g, function (all, name, value) { return value + ":" + name; }));
}
var r = /a(b+)?|c{1,3}$/gm, m, text = "ab abbb a ccc\ncc"; while ((m = r.exec(text)) !== null) { print(m.index, m[0], m[1], r.lastIndex); if (m[0] === "") r.lastIndex++; }
print("aXbXc".replace("X", "$&-$`-$'"), "camelCaseWord".replace(/[A-Z]/g, function (c) { return "_" + c.toLowerCase(); }));
print(/\bfoo\b/.test("a foo b"), /(?!b)[a-z]+/.exec("bcd")[0], /\u0041[\s\S]*?z/.exec("xAyyz")[0], "tab\tnew".split(/[\t]/));
print("a1b22c333".match(/\d+/g), "none".match(/\d+/), new RegExp("[" + "xyz" + "]", "i").source, "\u00e9t\u00e9".toUpperCase().length);
print(JSON.stringify({ text: "quote \" and \\ and \u0001", list: [1, [2, [3]], { a: null }], skip: undefined }, null, 2));
try { JSON.parse('{"a": [1, 2,]}'); } catch (e) { print(e.name); }
try { new RegExp("(a"); } catch (e) { print(e.name); }
