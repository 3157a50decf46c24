package reports

import (
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/evidence"
)

func redactionOf(t testing.TB, list ...string) *Redaction {
	t.Helper()
	r, err := ParseRedaction(list)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRedactionText(t *testing.T) {
	t.Setenv("HOME", "/data/users/bob")
	for _, x := range []struct{ rule, in, want string }{
		{"home", "/home/alice/src/a.c:7 and /Users/al-ice/x", "/home/[redacted]/src/a.c:7 and /Users/[redacted]/x"},
		{"home", "/mnt/home/alice", "/mnt/home/[redacted]"},
		{"home", `open("/home/alice") failed`, `open("/home/[redacted]") failed`},
		{"home", "/data/users/bob/x /data/users/bobby/x /data/users/bob", "/data/users/[redacted]/x /data/users/bobby/x /data/users/[redacted]"},
		{"home", "homes/alice /root/x", "homes/alice /root/x"},
		{"environment", `envp[3] = "GREETING=hello to \"you\" all" then`, `envp[3] = "GREETING=[redacted]" then`},
		{"environment", "LANG=C.UTF-8 A_1=x ./server --port=80", "LANG=[redacted] A_1=[redacted] ./server --port=80"},
		{"environment", "{PATH=/bin, x=3} n=5 a == B=", "{PATH=[redacted] x=3} n=5 a == B="},
		{"/cust-[0-9]+/", "order of cust-58213, cust-x", "order of [redacted], cust-x"},
		{"/customer (\\w+)/", "customer Miller left", "customer [redacted] left"},
		{"/é+/", "caféé\xff", "caf[redacted]\xff"},
		{"/(a)|b/", "ab", "[redacted]b"},
		{"/x/", "password=xyz, token=0x7f001234", "password=[redacted], token=0[redacted]7f001234"},
	} {
		if got := redactionOf(t, x.rule).Text(x.in); got != x.want {
			t.Errorf("%s: %q is %q, want %q", x.rule, x.in, got, x.want)
		}
	}
	var none *Redaction
	if got := none.Text("password=x /home/alice"); got != "password=[redacted] /home/alice" {
		t.Errorf("%q", got)
	}
}

// A rule that replaces part of a secret does not keep the rest of the secret from being replaced.
func TestRedactionKeepsNoRest(t *testing.T) {
	if got := redactionOf(t, "/hunter/").Text("password=hunter2"); strings.Contains(got, "2") {
		t.Errorf("%q", got)
	}
}

func TestParseRedaction(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "rules")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# names\n\nhome\r\n /cust-[0-9]+/ \n")
	if got := redactionOf(t, "@"+file).Text("/home/alice cust-1"); got != "/home/[redacted] [redacted]" {
		t.Errorf("%q", got)
	}
	write("home\n/s3cr3t(/\n")
	for _, x := range []struct{ rule, says string }{
		{"homes", "none of"}, {"", "none of"}, {"/", "none of"}, {"//", "none of"}, {"/a(/", "no regular expression"}, {"/x*/", "empty text"}, {"/(a)(b)/", "more than one group"},
		{"@" + file, "rules, line 2"}, {"@" + dir + "/none", "no such file"}, {"@" + dir, "is a directory"},
	} {
		if r, err := ParseRedaction([]string{x.rule}); err == nil || !strings.Contains(err.Error(), x.says) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: %v, %v", x.rule, r, err)
		}
	}
	write(strings.Repeat("home\n", maxRules+1))
	if _, err := ParseRedaction([]string{"@" + file}); err == nil {
		t.Error("a file with too many rules is taken")
	}
	if r, err := ParseRedaction(nil); r != nil || err != nil {
		t.Errorf("%v, %v", r, err)
	}
}

// privateText has text that must not leave the machine, among text that tries to escape.
const privateText = hostileText + ` /home/alice/src/a.c "GREETING=hello world" cust-58213 ` + "\x1b[31m/home/al\u00efce/x"

// privateCase has that text in every place that the target controls, and in memory.
func privateCase() *evidence.Case {
	c := hostileCase(privateText)
	d := c.Findings[1].Damage
	d.Before = hex.EncodeToString([]byte("x\x00SHELL=/bin/no such\x00cust-"))
	d.Bytes = hex.EncodeToString([]byte("58213\x00/home/al"))
	d.End, d.Overwritten, d.Expected = d.Start+14, 14, strings.Repeat("a5", 14)
	return c
}

// Text that a user asks to be replaced is in no format and in no issue, whatever is around it.
func TestRedactionInEveryFormat(t *testing.T) {
	r := redactionOf(t, "home", "environment", "/cust-[0-9]+/")
	secrets := []string{"alice", "al\u00efce", "hello world", "58213", "/bin/no", hex.EncodeToString([]byte("58213")), hex.EncodeToString([]byte("/bin")), "2f 62 69 6e", "35 38 32 31 33"}
	texts := map[string]string{}
	c := privateCase()
	for _, name := range Formats() {
		texts[name] = render(t, c, Options{Format: Format(name), Redact: r, SourceRoot: "/home/alice/src"})
		open := render(t, c, Options{Format: Format(name)})
		if !strings.Contains(open, "alice") || !strings.Contains(open, "58213") {
			t.Errorf("%s does not show it without being asked to hide it", name)
		}
	}
	for _, o := range []IssueOptions{GitHubIssue, GitLabIssue, GiteaIssue, JiraIssue, BugzillaIssue} {
		issue, err := WriteIssue(r.Case(c), o)
		if err != nil {
			t.Fatal(err)
		}
		texts["issue of "+string(o.Markup)] = issue.Title + "\n" + issue.Body
	}
	for name, text := range texts {
		for _, secret := range secrets {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s shows %q: %q", name, secret, text[max(0, i-40):i+len(secret)])
			}
		}
		if !strings.Contains(text, "redacted") || strings.ContainsAny(text, "\x1b\x07\u202e") {
			t.Errorf("%s is not what it was", name)
		}
	}
}

// Words of a fixed set are kept, and so are bytes that look like the text of a pattern.
func TestRedactionSpoilsNothing(t *testing.T) {
	r := redactionOf(t, "/null|overflow|heap|proved|core|[0-9a-f]{4}/")
	schema := sarifSchemaOf(t)
	if err := validateSARIF(t, schema, render(t, sample(), Options{Format: SARIF, Redact: r})); err != nil {
		t.Error(err)
	}
	text := render(t, sample(), Options{Format: JSON, Redact: r})
	for _, want := range []string{`"kind": "null-pointer"`, `"proof": "from core"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is gone from %s", want, text)
		}
	}
	if strings.Contains(text, hex.EncodeToString([]byte("hunter"))) || strings.Contains(text, "hunter2") {
		t.Error("a pattern that fits digits keeps secrets in memory from being found")
	}
}

func TestRedactionBytes(t *testing.T) {
	for in, want := range map[string]string{
		"":                                       "",
		"\xffPASSWORD=hunter2\x00LANG=C\x00zeno": "\xffPASSWORD=*******\x00LANG=*\x00****",
		"GET /?token=t0k3n&x=1 HTTP/1.1\r\n":     "GET /?token=*****&x=1 HTTP/1.1\r\n",
	} {
		data := []byte(in)
		if got := redactionOf(t, "environment", "/zeno/").Redactor().Bytes(data); string(got) != want || string(data) != in {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := (*Redaction)(nil).Redactor().Bytes([]byte("password=hunter2")); string(got) != "password=*******" {
		t.Errorf("%q", got)
	}
}

// A secret that one part of a document reveals is replaced in all of it, in memory as well, and in
// its issue.
func TestSecretsOfAllParts(t *testing.T) {
	c := sample()
	c.Failure.Sentence = `parse: cannot read "Zeno-77x"`
	c.Findings[1].Damage.Bytes = hex.EncodeToString([]byte("\x00Zeno-77x!"))
	c.Stacks[0].Stack.Frames[0].Locals = []evidence.Variable{{Name: "copy", Value: evidence.Value{Text: `0x10 "Zeno-77x\", \"n\""`}},
		{Name: "conn", Value: evidence.Value{Text: "{...}", Fields: []evidence.Variable{{Name: "db_password", Value: evidence.Value{Text: `"Zeno-77x"`}}}}}}
	texts := map[string]string{}
	for _, name := range Formats() {
		texts[name] = render(t, c, Options{Format: Format(name)})
	}
	for _, o := range []IssueOptions{GitHubIssue, GitLabIssue, GiteaIssue, JiraIssue, BugzillaIssue} {
		issue, err := WriteIssue(c, o)
		if err != nil {
			t.Fatal(err)
		}
		texts["issue of "+string(o.Markup)] = issue.Title + "\n" + issue.Body
	}
	for name, text := range texts {
		for _, secret := range []string{"Zeno", hex.EncodeToString([]byte("Zeno")), "5a 65 6e 6f"} {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s shows %q: %q", name, secret, text[max(0, i-40):i+len(secret)])
			}
		}
	}
}

// A key over several lines of source is replaced in each line, and the number of lines stays.
func TestSecretOfSeveralLines(t *testing.T) {
	c := sample()
	c.Failure.Source = &evidence.Source{File: "k.c", Lines: []evidence.SourceLine{{Number: 1, Text: `k = "-----BEGIN PRIVATE KEY-----\n"`}, {Number: 2, Text: `    "TUlJRXZn\n"`},
		{Number: 3, Text: `    "-----END PRIVATE KEY-----";`, Failed: true}, {Number: 4, Text: "use(k);"}}}
	out, _ := withoutSecrets(c, nil)
	want := []string{`k = "[redacted]"`, `    "[redacted]"`, `    "-----END PRIVATE KEY-----";`, "use(k);"}
	for i, l := range out.Failure.Source.Lines {
		if l.Text != want[i] || l.Number != i+1 || l.Failed != (i == 2) {
			t.Errorf("%+v, want %q", l, want[i])
		}
	}
}

// BenchmarkSecrets measures the cost of replacing secrets: compare with "shown".
func BenchmarkSecrets(b *testing.B) {
	c := hostileCase(hostileText)
	for _, x := range []struct {
		name string
		show bool
	}{{"shown", true}, {"replaced", false}} {
		b.Run(x.name, func(b *testing.B) {
			for b.Loop() {
				if err := Write(io.Discard, c, Options{Format: Text, ShowSecrets: x.show}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
