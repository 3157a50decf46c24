package secrets

import "testing"

// hiddenForms are texts as programs, configurations, logs and reports have them; the text
// between «» is a secret.
var hiddenForms = map[kind][]string{
	plain: {
		// JSON, also in C strings, and cut.
		`{"user": "bob", "pass": "«hunter2»"}`, `{"user":"bob","pw":"«hunter2»"}`, `"{\"pass\": \"«hunter2»\"}"`, `{"auths":{"r.example":{"auth":"«Ym9iOmh1bnRlcjI=»"}}}`,
		`{"passphrase": "«correct horse»"}`, `{"dbPass": "«hunter2»"}`, `{"secret_key": "«s3»"}`, `{"secretKey":"«s3»"}`, `{"session_key":"«q9»"}`, `{"psk": "«hunter2»"}`,
		`{"passwort": "«geheim»"}`, `"{\"pass\": \"«hunt»"...`, `"{\\\"pass\\\": \\\"«hunt»"...`, `{"key": "«Zk39xQ7LmT2vBn8W»"}`,
		// YAML, INI, properties, shell.
		"user: bob\npass: «hunter2»\n", "db:\n  pass: «hunter»\n", "[smtp]\nuser = bob\npass = «hunter2»\n", "spring.datasource.password=«hunter2»", "dbpass = \"«hunter2»\"", "smtp_pass='«x y»'",
		"requirepass «foobared»", "masterauth «foobared»", "//registry.npmjs.org/:_auth=«Ym9iOmh1bnRlcjI=»", "machine h login bob password «hunter2»", "PASS=«hunter2» USER=bob", "export DBPASS=«hunter2»",
		"SMTP_PASS: «hunter2»", "wpa_psk=«hunter22»", "psk=\"«hunter22»\"", "userpw=«hunter2»", "rootpw «hunter2»", "HMAC_KEY=«q8»", "MASTER_KEY=«ab12»",
		// Queries, forms, URLs.
		"GET /login?user=bob&pass=«hunter2»&go=1 HTTP/1.1", "https://h/x?pass=«hunter2»", "user=bob&pw=«hunter2»", "https://h/x?sv=1&sig=«Ab3dEf6hIj9kLm%2Bno»&se=2", "/cb?session_key=«abc»",
		"postgres://admin:«hunter2»", `dsn = 0x55 "postgres://admin:«hunt»"...`, `"mysql://root:«hun»"`, "amqps://bob:«12345»@h/", "ftp://bob:«a/b/c»@h/x", "redis://:«hunter2»", "https://x-access-token:«abc@github.com/a/b.git»", "fatal: cannot reach 'https://bob:«hunter2»@h/r.git/'",
		"jdbc:oracle:thin:scott/«tiger»@//h:1521/x",
		// Connection strings.
		"jdbc:mysql://h:3306/db?user=bob&password=«hunter2»&ssl=1", "jdbc:sqlserver://h:1433;user=sa;password=«hunter2»;", "Driver={ODBC Driver 18};Server=h;Uid=sa;Pwd=«hunter2»;", "DRIVER=x;UID=sa;PWD={«hun;ter2»};DB=x",
		"host=h port=5432 user=bob password=«hunter2» dbname=x", "password=«hunter2» host=h", "Endpoint=sb://h/;SharedAccessKeyName=n;SharedAccessKey=«ab+c/d=»", "User ID=sa;Password='«a;b»';",
		// XML, Go, arrays of a debugger, messages.
		`<add key="Password" value="«hunter2»"/>`, `<property name="password" value="«hunter2»"/>`, `<string name="pass">«hunter2»</string>`, "Config{User:bob Pass:«hunter2» Port:1}", `[0] = "prog", [1] = "--password", [2] = "«hunter2»"`,
		"the password is '«hunter2»'", "password is «hunter2»", "api key: «abcdef123»", "error: bad password: «hunter2»",
		// Headers.
		"Authorization: Basic «Ym9iOmh1bnRlcjI=»", "Proxy-Authorization: Basic «Ym9iOmh1bnRlcjI=»", `{"Authorization": "Bearer «abcdefgh1»"}`, "-H 'X-Api-Key: «abc1»'", "X-Vault-Token: «abc1»", "X-Auth-Key: «abc1»",
		"Cookie: «a=b»", "PHPSESSID=«el4ukv0kqbvoirg7nkp4dncpk3»", "JSESSIONID=«1A530637289A03B07199A44E8D531427»; Path=/", "connect.sid=«s3Avbx81kTQ2mN9pLz»", "header Basic «Ym9iOmh1bnRlcjI=»",
		// Command lines.
		"mysql -u root -p«hunter2» db", "mysqldump -uroot -p«hunter2» --all", `["mysql", "-uroot", "-p«hunter2»", "db"]`, "sshpass -p «hunter2» ssh bob@h", "sshpass -p«hunter2» ssh h", "redis-cli -h h -a «hunter2» ping", "openssl enc -pass «pass:hunter2»",
		"openssl rsa -passin pass:«hunter2» -in k", "curl -u «bob:hunter2» https://h", `["curl", "-u", "bob:«hunter2»", "h"]`, "smbclient //h/s -U bob%«hunter2»", "ldapsearch -D cn=a -w «hunter2» -b x", "prog --pass «hunter2»", "prog --pass=«hunter2»",
		"prog --auth-token «abc»", "prog '--password' '«hunter2»'", `"--password" "«hunter2»"`, "unzip -P «hunter2» a.zip", "7z x -p«hunter2» a.7z", "docker login -u bob -p «hunter2» r",
		// Keys in PEM and OpenSSH without their begin.
		"«b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAABlwAAAAdzc2gtcn»\n", `k = 0x55 "«b3BlbnNzaC1rZXktdjEAAAAABG5vbmUA»"...`,
		"«NhAAAAAwEAAQAAAYEAvV5p3Zq8kW1cXr7TgY2mLbN0hJdFsQeRiUoPtKaSzMwVxBnCyGf1»\n«9Qw6Er»\n", `"«vV5p3Zq8kW1cXr7TgY2mLbN0hJdFsQeRiUoPtKaSzMwVxBnCyGfH4jL6Dk9uIoEwAqZx5vRt2YpG»"`,
		`line = "«NhAAAAAwEAAQAAAYEAvV5p3Zq8kW1cXr7TgY2mLbN0hJdFsQeRiUoPtKaSzMwVxBnCyGf1»"`, `"«MIIEpAIBAAKCAQEAx7Tg»"...`, `"«MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSk»"...`, `"«MHcCAQEEIIrYSSNQFaA2Hwf1»"...`, `"«MC4CAQAwBQYDK2VwBCIEIJ1h»"...`,
		// Strings of a debugger or of this tool.
		`pass = 0x5581e3ab20e8 "«hunter2»"`, `{user = "bob", pass = "«hunter2»"}`, `{user = "bob", dbpass = 0x55 "«hunter2»"...}`, `cfg.passwd = "«hunter»"...`, `s = {pw = "«hunter2»", n = 3}`, `L"pass=«hunter2»"`, `u"password=«hunter2»"`,
		`{wide = {[0] = 112, [1] = 119, [2] = 61, [3] = «104», [4] = «117», [5] = «110», [6] = «116», ... 8 more}, n = 3}`, `{password = {[0] = «104», [1] = «117», [2] = «110», [3] = «50», [4] = 0}, n = 104}`,
		`{n = 104, wide = {112, 119, 61, «104», «117», «110», 0}, n = 104}`, `raw = {[0] = 112 'p', [1] = 119 'w', [2] = 61 '=', [3] = «104 'h'», [4] = «50 '2'»}`, `smtpPass = "«hunter2»"`, `m_sessionKey = "«Zk39xQ7LmT2v»"`, `key = 0x55 "«4f9a1c22e07b6d83a5c4e1f09b7d2638»"`,
	},
	source: {
		`	const char *pass = "«hunter2»";`, `char dbpass[] = "«hunter2»";`, `cfg.pw = "«hunter2»";`, `{"pass", "«hunter2»"},`, `#define DB_PASS "«hunter2»"`, `static const wchar_t *passphrase = L"«a b»";`, `setenv("DBPASS", "«hunter2»", 1);`, `const string pass("«hunter2»");`,
		`run("mysql -uroot -p«hunter2» db");`, `execlp("mysql", "mysql", "-uroot", "-p«hunter2»", NULL);`, `j = "{\"pass\":\"«hunter2»\"}";`, `u = "postgres://bob:«hunter2»" /* cut */;`, `static const char key[] = "«Zk39xQ7LmT2vBn8W»";`, `k = "«MIIEpAIBAAKCAQEAx7Tg»";`,
		`let pass: &str = "«hunter2»";`, `snprintf(b, n, "host=h password=«hunter2»");`, `"PWD={«hun;ter»};UID=sa"`,
	},
	memory: {
		"\x00pass=«hunter2»\x00LANG=C\x00", "\x01{\"pass\": \"«hunter2»\"}\x00", "DBPASS=«hunter2»\x00", "mysql\x00-uroot\x00-p«hunter2»\x00db\x00", "sshpass\x00-p\x00«hunter2»\x00ssh\x00", "prog\x00--password\x00«hunter2»\x00x\x00", "curl\x00-u\x00bob:«hunter2»\x00h\x00", "\x02postgres://bob:«hunter2»\x00",
		"p\x00a\x00s\x00s\x00=\x00«h\x00u\x00n\x00t\x00e\x00r\x002\x00»",
	},
}

// notSecret are texts that a report is read for; nothing in them is a secret.
var notSecret = map[kind][]string{
	plain: {
		// Compilers, linkers, tests, kernels, C libraries.
		"server.c:42:7: warning: unused variable 'password' [-Wunused-variable]", "error: use of undeclared identifier 'token'", "error: expected ';' before 'token'", "undefined reference to `get_password'", "note: candidate: 'void set_pass(const char*)'",
		"-Rpass=inline -Rpass-missed=loop", "PASS: test_login.sh", "PASS: t/basic12.t", "pass: 12, fail: 3", "pass=1024 fail=2", "in pass: 2", "pass 3 of 5", "first pass: done", "first_pass = \"dce\"", "low_pass=butterworth2", "renderPass = \"shadow\"", "bypass=true1", "compass: north12", "subpass = \"opt2\"",
		"test 3 ... pass: yes", "the pass is: wrong", "LLVM: running pass 'DeadStoreElimination' on f", "pass the flag --auth to enable", "*** stack smashing detected ***: terminated", "double free or corruption (fasttop)", "segfault at 0 ip 00005581e3ab20e8 sp 00007ffd1c error 4 in prog[5581e3ab2000+1000]",
		"the password is wrong", "password is 8 characters", "the secret is out", "api key: missing", "passwd: file not found", "passwd: no such user", "passwd: password unchanged", "su: Authentication failure", "sudo: a password is required", "password is too short", "Password must be changed", "password: too short", "error: password too weak: need 8 characters", "password for bob: ", "[sudo] password for bob:",
		"invalid password given", "bad password for 'admin'", "wrong pass phrase", "Enter PEM pass phrase:", "password authentication failed for user \"bob\"", "FATAL: no password supplied", "token expired at 2024-01-01", "secret not found: db-credentials", "credentials: none", "auth: required", "auth = basic", "auth=scram-sha-256", "authentication: ok", "Auth method: publickey",
		// Code.
		"token.kind", "password = get_password()", "pass = next_pass(p)", "pass = first;", "if (pw == NULL) return;", "pw = getpwuid(uid)", "pw->pw_name = \"bob\"", "key = map[i]", "key == \"abc123def456ghi7\" ? 1 : 0", "auth.c:12", "auth::session::open(int)", "sess->auth(user)", "switch (token->kind)", "std::map<std::string, Password>", "check_pass(user, pass)", "for (pass = 0; pass < 2; pass++)", "pass = 0x5581e3ab20e8", "password = <optimized out>", "pass = (nil)", "pass=%s", "password=$PASS", "pass=${PASS}", "password={password}", "\"pass\": null", "\"password\": \"\"", "\"pass\": true",
		// Hashes, build-ids, UUIDs, addresses.
		"commit 8a5cbd1b2f7e4c3d9a0f1e2d3c4b5a6978869504", "build-id: 3abc78fa8048b6cce88a0c0fe1b18badbc6f1368", "id 550e8400-e29b-41d4-a716-446655440000", "key = \"550e8400-e29b-41d4-a716-a1b2c3d4e5f6\"", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"integrity sha384-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC", "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7", "0x00007f5581e3ab20e8", "7f5581e3a000-7f5581e3b000 r-xp 00000000 08:01 131 /usr/lib/libc.so.6", "_ZNSt6vectorIiSaIiEE9push_backEOiabcdefghijklmnopqrstuvwxyzABCDEFGHIJ",
		"src/module/Component2/Handler/InnerClass/VeryLongDirectoryName12/x/y1", "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz0123456789ABCD",
		// URLs, paths, options.
		"http://localhost:8080/x", "http://127.0.0.1:9090", "connect to tcp://db:5432 failed", "usage: prog http://host:port", "mongodb://h1:27017,h2:27018/db", "http://[::1]:8080/", "see https://example.org: it is down", "https://h/x@1.2.3:y", "git@github.com:a/b.git", "http://localhost:%d/", "http://h:${PORT}",
		"mysql -u root -p db", "mysqld -p 3306", "mkdir -p /tmp/x", "cp -pR a b", "ssh -p 2222 h", "docker run -p 8080:80 img", "tar -pxf a.tar", "grep -a pattern", "redis-cli -a", "curl -u bob https://h", "--key /etc/k.pem", "--key-file=/etc/k.pem", "--auth none", "the option --pass is unknown",
		"{[0] = 112, [1] = 97, [2] = 103, [3] = 101}, password = {[0] = 3, [1] = 4, [2] = 5, [3] = 6}", "basic block 12 of f", "Basic authentication failed", "session 12 closed", "session_id = 7", "sid=12", "primary_key = \"user_id\"", "sort_key: \"name\"", "key: value", "{key = \"apple\", value = 3}", "key = \"user:1234\"", "signature: void f(int)", "sig = SIGSEGV", "pskip = 3", "cache_key = \"users/42\"", "public_key = \"Zk39xQ7LmT2vBn8W\"",
	},
	source: {
		`run_pass(&passes[i], "licm");`, `if (strcmp(key, "apple") == 0)`, `printf("pass %d: %s\n", pass, name);`, `printf("PASS: %s\n", "test_12");`, `pw = getpwnam("daemon");`, `fprintf(stderr, "passwd: file not found\n");`, `map_set(m, "key", "value");`, `key = "user:1234";`, `password = get_password();`, `err("auth: required");`, `connect("tcp://db:5432");`,
		`if (auth == NULL) die("no auth");`, `const char *first_pass = "dce";`, `die("password is too short");`, `bypass("x12");`, `log("http://%s:%d/", host, port);`,
	},
	memory: {
		"\x00mkdir\x00-p\x00/tmp/x\x00", "PASS: test_1\x00", "\x00/usr/lib/libauth.so.1\x00", "passwd: file not found\x00", "http://localhost:8080\x00",
	},
}

func TestHiddenForms(t *testing.T) {
	for k, list := range hiddenForms {
		for _, text := range list {
			in, want := marked(text)
			if got := Replace(in, new(Finder).spansOf(k, in), mark); got != want {
				t.Errorf("kind %d: %q\n got %q\nwant %q", k, in, got, want)
			}
		}
	}
}

func TestNotSecret(t *testing.T) {
	for k, list := range notSecret {
		for _, text := range list {
			if got := Replace(text, new(Finder).spansOf(k, text), mark); got != text {
				t.Errorf("kind %d: %q\n got %q", k, text, got)
			}
		}
	}
}
