package secrets

import "testing"

// layouts are messages in which no separator of programs is between a name and its value.
var layouts = map[kind][]string{
	plain: {
		// Headers with quoted parameters.
		`Proxy-Authorization: Digest «username="b", realm="r x", response="SEKRET66"»` + "\r\nHost: h", `"Authorization: Digest «username=\"b\", response=\"SEKRET66\"»", n = "visible"`,
		`Authorization: Digest «username=bob, response=6629»`, `Authorization: OAuth «oauth_token="SEKRETo1", oauth_signature="x"»`, `Cookie: «sid="SEKRET66"; theme=dark»`,
		`{c = "Cookie: «sid=»", y = "visible"}`, `"Authorization: Digest «username=\"b\", response=\"SEK»"..., n = "visible"`, "Authorization: AWS4-HMAC-SHA256 «Credential=AKIAx/20, Signature=ab12»",
		// Tables, forms, property lists, URLs.
		"user\tbob\npassword\t«SEKRETtab1»\nport\t80", `"password\t«SEKRETtab1»"`, "password\t«aB3xYz9Q»\tbob",
		"Content-Disposition: form-data; name=\"password\"\r\n\r\n«SEK\"RET m1»\r\n--x\r\n", `"form-data; name=\"password\"\r\n\r\n«SEKRETm1»\r\n--x--"`, `"form-data; name=\"password\"\r\nContent-Type: text/plain\r\n\r\n«SEKR»"..., n = "visible"`,
		"<key>password</key><string>«SEKRETp1»</string>", "<key>password</key>\n\t<string>«SEK RETp1»</string>\n<key>n</key><string>visible</string>", "<name>db.password</name> <value>«SEKRETp1»</value>", `"<key>password</key><string>«SEKR»"..., n = "visible"`,
		"/cb?next=%2Fx%3Fpassword%3D«SEKRETu1»%26n%3Dvisible", "password%3D«SEKRETu1»", "password%253d«SEKRET%2520u1»%2526n=1", "q=%7B%22password%22%3A%22«SEKRETu1»%22%7D", "u=https%3A%2F%2Fbob%3A«SEKRETu1»%40h%2Fx",
		// XML.
		"<password>«hunter2»</password>", "<wsse:Password Type=\"PasswordText\">«SEKRETx1»</wsse:Password>", "<password>\n  «two words»\n</password><n>visible</n>", "<password><value>«SEKRETx2»</value></password><value>visible</value>",
		"<credentials type=\"plain\"><user>«bob»</user> <pin>«4711»</pin></credentials>", `<password value="«SEKRETx3»"/><option value="visible"/>`, `<db:password encoding='plain' value='«SEKRETx3»'></db:password>`, "<secret><![CDATA[«SEK<RETx4»]]></secret>", "<token>«aB3xYz9»</token>",
		"<a><password>«SEKRETx5»", `"<a><password>«SEKR»"..., n = "visible"`, `"<cfg><password enc=\"no\">«SEKRETx6»</password></cfg>"`, "<password><item name=\"a\"><value>«SEKRETx7»</value></item></password>",
		// POP3 and FTP.
		"USER bob\r\nPASS «hunter2»\r\nQUIT", `"PASS «hunter2»\r\n"`, "PASS «SEKRETftp»",
	},
	source: {`b = "form-data; name=\"password\"\r\n\r\n«SEKRETm1»\r\n--x";`, `u = "a=1&password%3D«SEKRETu1»";`, `send(s, "PASS «hunter2»\r\n");`, `h = "Authorization: Digest «username=\"b\", response=\"SEKRET66\"»";`, `x = "password\t«SEKRETtab1»";`},
	memory: {"\x00PASS «hunter2»\r\n\x00", "name=\"password\"\r\n\r\n«SEKRETm1»\r\n--x", "\x01a=1&password%3D«SEKRETu1»\x00", "Authorization: Digest «username=\"b\", response=\"SEKRET66\"»\r\nHost: h"},
}

var noLayouts = map[kind][]string{
	plain: {
		"PASS test_login", "PASS src/foo.test.js", "PASS basic.sh", "PASS: basic12", "PASS all of them", "test PASS hunter2", "PASS", "PASS parser::tokens12", "tests: PASS 12",
		"user\tpassword\temail", "password\tdescription\tdefault", "passwd\tcannot open", "the password\tabc12", "password\t%s", "<key>password</key><true/>", "<key>name</key><string>visible</string>",
		"std::vector<password> list(3); next", "Box<Password> p", "if (a <password && b> c)", "<password/><user>visible</user>", "<password></password><user>visible</user>", "<password>\n<user>visible</user>", "<key>name</key>",
		"passwd: [error] cannot open", "password[3] = next", "secret[i] = text[i];",
		"password%3d of %3d", "printf(\"pass %3d\")", "name=\"password\" value", "passwd: cannot open file", "name=\"user\"\r\n\r\nvisible\r\n--x", "100%3A visible",
	},
	source: {`printf("password %3d of %3d", i, n);`, `printf("PASS %s\n", name);`, `puts("PASS test_1");`},
}

func TestLayouts(t *testing.T) {
	for k, list := range layouts {
		for _, text := range list {
			in, want := marked(text)
			if got := Replace(in, new(Finder).spansOf(k, in), mark); got != want {
				t.Errorf("kind %d: %q\n got %q\nwant %q", k, in, got, want)
			}
		}
	}
	for k, list := range noLayouts {
		for _, text := range list {
			if got := Replace(text, new(Finder).spansOf(k, text), mark); got != text {
				t.Errorf("kind %d: %q\n got %q", k, text, got)
			}
		}
	}
}
