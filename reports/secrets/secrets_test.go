package secrets

import (
	"fmt"
	"strings"
	"testing"
)

const mark = "[-]"

// marked is a text without «», and with a mark in place of the text between them.
func marked(text string) (in, want string) {
	in = strings.NewReplacer("«", "", "»", "").Replace(text)
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "«")
		want += before
		if !found {
			return in, want
		}
		_, rest, _ = strings.Cut(after, "»")
		want += mark
	}
}

const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"

func TestText(t *testing.T) {
	for _, text := range []string{
		// Command lines, environments, connection strings.
		"prog --password «hunter2» --port 80", "prog --db-password=«hunter2»", "mysqldump --password «x» db",
		"MYSQL_PASSWORD=«x1» prog", "PGPASSWORD=«x» DB_PASS=«y» SECRET_KEY_BASE=«z»", "AWS_SECRET_ACCESS_KEY=«wJalr/x» PATH=/bin",
		"PWD=/home/bob OLDPWD=/tmp", "Server=db;User Id=sa;Password=«p@ss=w»;Encrypt=yes", "host=h password='«my pass»' user=x",
		"DefaultEndpointsProtocol=https;AccountName=a;AccountKey=«ab+c/d==»;EndpointSuffix=x", "GET /?a=1&access_token=«abc»&b=2 HTTP/1.1",
		"postgres://admin:«p@ss»@db.example/x", "mongodb+srv://u:«pw»@h/?x=1", "redis://:«pw»@h:6379", "https://host:8080/x@y", "http://[::1]:80/",
		// Headers.
		"Authorization: Bearer «abcdefghijkl»", "Authorization: Basic «dXNlcjpwYXNz»", "authorization: «abc123»", "X-Api-Key: «abc»", `X-Auth-Token: «a1»`,
		"Cookie: «sid=abc; theme=dark»", "Set-Cookie: «sid=abc; Secure»", "Proxy-Authorization: Digest «username=bob, response=6629»",
		// JSON, Python, YAML, INI, XML, SQL.
		`{"password": "«two words»", "user": "bob"}`, `{"a":{"client_secret":"«abc»"},"n":1}`, `{'api_key': '«SEKRETpy»'}`, `Config(password='«x y»', user='b')`,
		"user: bob\npassword: «hunter2»\nport: 1", "db_password = «hunter2»\nuser = bob", "<password>«hunter2»</password>", "CREATE USER x IDENTIFIED BY '«pw»'",
		`{"name": "DB_PASSWORD", "value": "«x»"}`, `["--password", "«two words»"]`, "secret => '«x»'",
		// What a report makes of them.
		`"{\"password\": \"«two words»\", \"user\": \"bob\"}"`, `"{\"a\": \"{\\\"password\\\": \\\"«x»\\\"}\"}"`, `"user=bob\npassword=«hunter2»\nx"`,
		`{u = 0x55 "x", password = 0x5581e3ab20e8 "«two words»", n = 3}`, `secret = {data = 0x55 <x> "«abc»", size = 3}`, `token = "«aB3xYz9»"`,
		`{["password"] = "«x»"}`, `{first = "password", second = "«x»"}`, `password = Some("«x»")`, `L"password=«hunter2»"`, `u8"pass\u0077ord=«hunter2»"`,
		`"{\"password\": \"«SEKRETjs»`, `password = b'«x»'`, `secret_key = {[0] = «83 'S'», [1] = «1 '\x01'», [2] = «125 '}'», [3] = «92 '\\'», [4] = 7...`, `{token = {kind = 3, text = "while"}}`,
		// Forms.
		"key «AKIAABCDEFGHIJKLMNOP».", "x=«ghp_0123456789012345678901234567890123ab»", `"«` + jwt + `»"`, "«xoxb-0123456789-0123456789-abcdefghijkl»", "«sk_live_0123456789abcdef»",
		`"«eyJhbGciOiJIUzI1NiJ9.eyJz»"...`, `{g = 0x55 "«ghp_SEKR»"...}`, "glpat x «glpat-0123456789abcdefghij»",
		"«-----BEGIN RSA PRIVATE KEY-----\nMII\n»-----END RSA PRIVATE KEY----- rest", `"«-----BEGIN EC PRIVATE KEY-----\nMHcC»"..., n = 3`,
		"root:$6$«abcdefgh$0123456789abcdefghijklmnopqrstuv»:1:", "\n«MIIEpAIBAAKCAQEA0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL»\n«abcd=»\n",

		// No secrets.
		"null pointer read in auth::token::parse", "if (token == expected)", "token: 0x7f001234, password=(nil), secret = <optimized out>",
		"next_token->kind == 3 in pass: 2", "double free or corruption (!prev)", "server.c:42: parse: Assertion `token != 0' failed.",
		"passwd: cannot open file", "passwd: Authentication token manipulation error", "passwd: /etc/passwd: Permission denied", "secret: not found", "error: token: invalid",
		"unexpected token: 'while'", "unexpected token: '}'", "unexpected token: \"else\"", "password: incorrect", "Password: ", "access denied for user (using password: YES)",
		"check_password(user) returns 0", "token = next_token()", "token = 3", "token = next;", "token = \"while\"", "tok = lex(); secret = get_secret(ctx)", "token = TOKEN_IDENTIFIER",
		"the option --token requires an argument", "bearer authentication failed", "Authorization: required", "token count: 12, max_tokens: 4096, password_length = 16",
		"build-id 3abc78fa8048b6cce88a0c0fe1b18badbc6f1368", "commit 663c93c1234567890abcdef1234567890abcdef0", "550e8400-e29b-41d4-a716-446655440000",
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"password=%s", "password=${DB_PASSWORD}", "std::map<std::string, Secret>", "private_key: /etc/ssl/key.pem", "thread 3 holds token_mutex since line 7",
		"names like `password=` are left out: `token`, `salt`", "the header identified by `name` or \"code\"", `"PWD": "/home/bob", OLDPWD='/tmp'`, "the trailer.<token>.command variable",
		"Secrets that the report recognises (passwords, tokens, keys) are replaced", "the token is: expired", "key: value", "the secret -> next was 0x0",
	} {
		in, want := marked(text)
		if got := Replace(in, new(Finder).Text(in), mark); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestSource(t *testing.T) {
	for _, text := range []string{
		`	const char *password = "«hunter2»";`, `	char db_pass[] = "«x»"; next();`, `char password[16] = "«x»";`, `#define DB_PASSWORD "«x»"`,
		`set_password("«hunter2»");`, `strcpy(c.password, "«hunter2»");`, `{"password", "«hunter2»"},`, `std::string secret{"«x»"};`, `std::string secret("«x»");`,
		`let password = String::from("«x»");`, `let password: &str = "«x»";`, `const wchar_t *password = L"«x»";`, `const char *secret = R"(«a "b" c»)";`, `x.token = "«aB3xYz9»";`,
		`setenv("PGPASSWORD", "«x»", 1);`, `if (password == "«x»") return;`, `password = "«a»" "«b»";`,
		`x.u = "postgres://admin:«SEKRETurl»@db.example/x";`, `x.js = "{\"password\": \"«SEKRETjson»\", \"user\": \"bob\"}"; x.js2 = "{'api_key': '«SEKRETpy»'}";`,
		`x.j = "«` + jwt + `»"; // and more`, `x.b = "Authorization: Bearer «SEKRETbearer»";`, `x = 1; // password=«hunter2»`, `{"Authorization", "«Basic U0VLUkVUYmFzaWM6eA==»"},`, `set("Authorization: Basic «U0VLUkVUYmFzaWM6eA==»")`, " * the password: «hunter2»\n */",
		"k = \"«-----BEGIN RSA PRIVATE KEY-----\\n»\"\n  \"«MIIEpAIBAAKC\\n»\"\n  \"-----END RSA PRIVATE KEY-----\\n\";",
		"x = \"password=«abc»\"\n    \"«def»\";",

		`	password = read_password(session->token);`, `	if (token == NULL) printf("no token");`, `token = next_token();`, `if (check_password(user)) return "ok";`,
		`printf("password: "); gets("other");`, `printf("passwd: cannot open %s\n", name);`, `{"password", "the user's password"},`, `die("bad token", "x");`,
		`case TOKEN: return "token";`, `const char *token = "while";`, `log_secret("reading the secret");`, `int password_length = strlen("hunter");`, `char c = '"'; token = next(c, "x");`,
		`struct token { char *secret; int key; };`, `fprintf(stderr, "password: %s\n", password);`, `opts.add("token", 't', "an argument");`,
	} {
		in, want := marked(text)
		f := new(Finder)
		if got := Replace(in, Lines(in, f.Source(in)), mark); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

// A value that one text shows as a secret is found in others, if it is distinct.
func TestKnown(t *testing.T) {
	for _, x := range []struct{ first, text string }{
		{"password=hunter2", `x = "«hunter2»-«hunter2»"`},
		{`password = "a\"b\\c12"`, `x = "«a\"b\\c12»"`},
		{`{"password": "SEKRETjson"}`, `p = 0x55 "«RETjson»\", \"user\""`},
		{`{"password": "SEKRETjson"}`, `buf = "{xx «SEKRETj»"...`},
		{"password=sunshine", "«sunshine» and sunshines"},
		{"password=yes12", "yes12"}, {"password=1", "1"}, {"password=aaaaaaaa", "aaaaaaaa"}, {"password=hunter", "the hunter"},
		{`password = "password"`, "the password is wrong"}, {"token=next_token", "next_token()"}, {"api_key=/etc/keys/a.pem", "open /etc/keys/a.pem"},
	} {
		f := new(Finder)
		f.Text(x.first)
		in, want := marked(x.text)
		if got := Replace(in, f.Text(in), mark); got != want {
			t.Errorf("after %s\n got %s\nwant %s", x.first, got, want)
		}
	}
}

func TestNamed(t *testing.T) {
	for _, text := range []string{`0x55 "«two words»"...`, "{[0] = «83 'S'», n = 3}", "3", `{a = "«x»", n = 3}`, "0x1234", `0x0`, `"%s"`, `"«a\"b»"`} {
		in, want := marked(text)
		if got := Replace(in, new(Finder).Value("password")(in), mark); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func wide(text string, width int) string {
	var b strings.Builder
	for i := range len(text) {
		b.WriteString(text[i:i+1] + strings.Repeat("\x00", width-1))
	}
	return b.String()
}

func TestMemory(t *testing.T) {
	for _, x := range []struct{ before, in, want string }{
		{"", "\xffPASSWORD=hunter2\x00LANG=C\x00", "\xffPASSWORD=[-]\x00LANG=C\x00"},
		{"", "\x01{\"password\": \"hunter2\"}", "\x01{\"password\": \"[-]\"}"},
		{"", "abc" + wide("password=hunter2", 4) + "x", "abc" + wide("password=", 4) + "[-]x"},
		{"", wide("password=hunter2", 2), wide("password=", 2) + "[-]"},
		{"password=SEKRET12", "ET12\x00abc SEKRE", "ET12\x00abc [-]"},
		{"password=SEKRET12", "KRET12\x00abc", "[-]\x00abc"},
	} {
		f := new(Finder)
		f.Text(x.before)
		if got := Replace(x.in, f.Memory([]byte(x.in)), mark); got != x.want {
			t.Errorf("%q: %q, want %q", x.in, got, x.want)
		}
	}
}

func TestNames(t *testing.T) {
	const text = `0x55 "aB3xYz9" "while" {a = "aB3xYz9"}`
	for name, want := range map[string]string{"password": "all", "db_password": "all", "apiKey": "all", "session_token": "all", "secret": "all", "client_secret": "all", "m_password": "all",
		"password_": "all", "PWD": "all", "GITHUB_TOKEN": "all", "db_pass": "all", "credentials": "all", "token": "random", "next_token": "random", "m_token": "random", "password_length": "none",
		"tokens": "none", "check_password_hash_size": "none", "key": "none", "bearer": "none", "pass": "all", "dbpass": "all", "bypass": "none", "renderPass": "none", "monkey": "none", "tokenizer": "none"} {
		got := "none"
		if find := new(Finder).Value(name); find != nil {
			got = map[int]string{0: "none", 2: "random", 3: "all"}[strings.Count(Replace(text, find(text), mark), mark)]
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Secrets keep being replaced where a document has too much that looks like them, and the
// work has a bound that does not grow with the number of rules.
func TestBoundedWork(t *testing.T) {
	var words strings.Builder
	for _, w := range table().words {
		words.WriteString(w + " = ")
	}
	hostile := strings.Repeat(words.String(), 1<<18/words.Len())
	f := new(Finder)
	f.Text(hostile)
	if f.spent < mostWork {
		t.Fatalf("%d bytes are read: the bound is not reached", f.spent)
	}
	token := "ghp_0123456789012345678901234567890123ab"
	if got := Replace("x "+token, f.Text("x "+token), mark); strings.Contains(got, "345678") {
		t.Errorf("%s", got)
	}
	for _, text := range []string{strings.Repeat("password=", 1<<14), strings.Repeat(`password="`, 1<<14), strings.Repeat(`\`, 1<<16), strings.Repeat(`"password": {`, 1<<13), strings.Repeat("secret = {'", 1<<13),
		strings.Repeat("<password>", 1<<14), strings.Repeat("<password><a>", 1<<14) + strings.Repeat("</password>", 1<<14), strings.Repeat(`<password value="`, 1<<14)} {
		f := new(Finder)
		f.Text(text)
		f.Source(text)
		f.Memory([]byte(text))
	}
}

// The search of known values in strings that are cut has the same bound, and after it
// what begins like a known value is replaced.
func TestBoundedKnown(t *testing.T) {
	f := new(Finder)
	begin := "Zk39xQ7L" + strings.Repeat("mT2v", 40)
	for i := range mostKnown {
		f.known.learn(fmt.Sprintf("%s%03d", begin, i))
	}
	if n := len(f.known.values); n != mostKnown {
		t.Fatalf("%d values are known", n)
	}
	text := strings.Repeat(`"`+begin+`x" `, 900)
	f.Text(text)
	if f.spent < mostWork || f.spent > mostWork+len(begin) {
		t.Errorf("the work is %d, want the bound, %d", f.spent, mostWork)
	}
	if got := Replace(text, f.Text(text), mark); strings.Contains(got, "Zk39x") {
		t.Error("what begins like a known value is not replaced after the bound")
	}
}

func FuzzFinder(f *testing.F) {
	f.Add(`{"password": "x\"y"} -----BEGIN RSA PRIVATE KEY-----`)
	f.Add("p\x00a\x00s\x00s\x00w\x00o\x00r\x00d\x00=\x00x\x00")
	f.Add(`secret = {[0] = 83 'S', a = "\`)
	f.Fuzz(func(t *testing.T, text string) {
		finder := new(Finder)
		for range 2 {
			for _, spans := range [][]Span{finder.Text(text), finder.Source(text), finder.Memory([]byte(text)), finder.Value("password")(text), finder.Value("token")(text)} {
				last := 0
				for _, s := range spans {
					if s.Start < last || s.Start >= s.End || s.End > len(text) {
						t.Fatalf("%q: %v", text, spans)
					}
					last = s.End
				}
			}
		}
	})
}
