package secrets

import (
	"strings"
	"testing"
)

// containers are objects and arrays under a secret's name, as each kind of text has them.
var containers = map[kind][]string{
	plain: {
		`{"auth":{"token":{"value":"«SEKRETnested1»"}}}`, `{"passwords":{"bob":"«SEKRETbob1»"}}`, `{"password":["«SEKRETaa11»","«SEKRETbb22»"]}`,
		`{"credentials":{"user":"«bob»","pin":"«SEKRETcc33»"},"n":1}`, `{"credentials": {"pin": «4711», "ok": true, "none": null}, "port": 8080}`,
		`{"credentials":[{"user":"«bob»","keys":["«SEKRETdd44»",["«SEKRETee55»"]]}],"name":"visible"}`, `{"secrets":[ «12», «34567» ],"n":77}`,
		`{'credentials': {'user': '«bob»', 'pin': '«SEKRETcc33»'}, 'n': 'visible'}`, `{"credentials" => {"user" => "«bob»"}, "n" => "visible"}`,
		`passwords = ["«SEKRETaa11»", "«SEKRETbb22»"]; n = ["visible"]`, `PASSWORDS=("«SEKRETaa11»" "«SEKRETbb22»")`, `'password': ('«SEKRETaa11»', '«SEKRETbb22»')`,
		`credentials: {user: «bobby», pin: «SEKRETcc33»}, x: {y: visible}`, `credentials: {user: '«bob»', pin: '«SEKRETcc33»'}`, `Config{Credentials:{User:«bobby» Pin:«SEKRETcc33»} Port:80}`,
		`{["credentials"] = {["user"] = "«bob»", ["pin"] = "«SEKRETcc33»"}, n = "visible"}`,
		// In the strings of a debugger, cut, and followed by others.
		`"{\"credentials\":{\"user\":\"«bob»\",\"pin\":\"«SEKRETcc33»\"}}"`, `"{\"credentials\":{\"user\":\"«bob»\",\"pin\":\"«SEKR»"..., n = "visible", m = 12`,
		`"{\"credentials\":{\"user\":\"«bob»\",\"pin\":\""..., n = "visible", m = 12`, `"{\"credentials\":{\"user\":\"«bob»\"", n = 3, m = "visible"`, `"{\"credentials\":{\"user\":\"«bob»\",", n = 3, m = "visible"`,
		`{"credentials":{"user":"«bob»","pin":"«SEKRETcc33»`, `{"password":["«SEKRETaa11»","«SEKRETbb22»`,
		// A name of parsers, or one like key.
		`token = {kind = 3, text = "while", value = "«aB3xYz9»", password = "«hunter»"}`, `{"key": {"name": "apple", "material": "«Zk39xQ7LmT2vBn8W»"}}`,
	},
	source: {
		`j = "{\"auth\":{\"token\":{\"value\":\"«SEKRETnested1»\"}}}";`, `j = "{\"passwords\":{\"bob\":\"«SEKRETbob1»\"}}"; n = "visible";`,
		`j = "{\"password\":[\"«SEKRETaa11»\",\"«SEKRETbb22»\"]}";`, `j = "{\"credentials\":{\"user\":\"«bob»\",\"pin\":\"«SEKRETcc33»\"}}";`,
		"j = \"{\\\"credentials\\\":{\"\n  \"\\\"pin\\\":\\\"«SEKRETcc33»\\\"}}\";", `j = R"({"credentials":{"user":"«bob»","pin":"«SEKRETcc33»"}})";`,
		`const char *passwords[] = {"«SEKRETaa11»", "«SEKRETbb22»"}; f("visible");`, `let passwords = ["«SEKRETaa11»", "«SEKRETbb22»"];`, `static const char *const secrets[2] = { "«SEKRETaa11»",` + "\n" + `  "«SEKRETbb22»" };`,
	},
	memory: {
		"\x01{\"credentials\":{\"user\":\"«bob»\",\"pin\":\"«SEKRETcc33»\"}}\x00", "\x00{\"a\":\"{\\\"credentials\\\":{\\\"pin\\\":\\\"«SEKRETcc33»\\\"}}\"}\x00",
	},
}

// noContainers are texts with brackets in which nothing is a secret.
var noContainers = map[kind][]string{
	plain: {
		"secret = {size = 3, next = 0x0}", `{token = {kind = 3, text = "while"}}`, `{"key": {"name": "apple", "n": 12}}`,
		`struct credentials { int uid; } "x"`, "secret: {count: 3, next: nil}", "password: {user: not found}",
	},
	source: {`const char *names[] = {"user", "password"};`, `if (password[0] == '{') f("x");`, `token_names[] = {"while", "else"};`, `struct secret { const char *name; } s = f("x");`},
}

func TestContainers(t *testing.T) {
	for k, list := range containers {
		for _, text := range list {
			in, want := marked(text)
			f := new(Finder)
			spans := f.spansOf(k, in)
			if k == source {
				spans = Lines(in, spans)
			}
			if got := Replace(in, spans, mark); got != want {
				t.Errorf("kind %d: %s\n got %s\nwant %s", k, in, got, want)
			}
		}
	}
	for k, list := range noContainers {
		for _, text := range list {
			if got := Replace(text, new(Finder).spansOf(k, text), mark); got != text {
				t.Errorf("kind %d: %s\n got %s", k, text, got)
			}
		}
	}
}

// TestDeepContainers: containers in containers are read once, however long they are (quadratic
// time would be hours).
func TestDeepContainers(t *testing.T) {
	for _, again := range []string{`"password":{`, `{"token":{"password":[`, `"auth":["x",`, `secret = {token = {`, `'password':{'`, `"credentials":{"a":"b",`, `credentials: {a: b, `} {
		text := strings.Repeat(again, 15_000)
		f := new(Finder)
		f.Text(text)
		f.Source(text)
	}
	long := `{"credentials":{` + strings.Repeat(`"a":"xx",`, longestValue) + `"pin":"SEKRETcc33"}}`
	if got := Replace(long, new(Finder).Text(long), mark); strings.Contains(got, "SEKRET") {
		t.Error("a value far from the name is not found")
	}
}
