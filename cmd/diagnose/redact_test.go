package main

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/reports"
)

func redactionOf(t *testing.T, list ...string) *reports.Redaction {
	t.Helper()
	r, err := reports.ParseRedaction(list)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func redactedJSON(text string, r *reports.Redaction) ([]byte, error) {
	return redactJSON([]byte(text), r, r.Redactor())
}

func TestRedactJSON(t *testing.T) {
	secret := base64.StdEncoding.EncodeToString([]byte("\xff password=hunter2"))
	hidden := base64.StdEncoding.EncodeToString([]byte("\xff password=*******"))
	for _, c := range []struct{ in, want string }{
		{`{"zeno": 1, "a": "zeno", "s": ["zeno", "x\"zeno\\"]}`, `{"zeno": 1, "a": "[redacted]", "s": ["[redacted]", "x\"[redacted]\\"]}`},
		{`{"args": ["server", "--password", "two words", "-v", "--token", "t"]}`, `{"args": ["server", "--password", "[redacted]", "-v", "--token", "[redacted]"]}`},
		{`["--password", "x", "kept"]`, `["--password", "[redacted]", "kept"]`},
		{`{"a": "--password", "b": "kept"}`, `{"a": "--password", "b": "kept"}`},
		{`[["--password"], ["kept"]]`, `[["--password"], ["kept"]]`},
		{`{"environ": ["LANG=C UTF", "DB_PASSWORD=a \"b\" c", "x y"]}`, `{"environ": ["LANG=C UTF", "DB_PASSWORD=[redacted]", "x y"]}`},
		{`{"environ": [{"base64": "` + secret + `"}]}`, `{"environ": [{"base64": "` + hidden + `"}]}`},
		{"{\n  \"a\": 1.50,\n  \"b\": [ ]\n}\n", "{\n  \"a\": 1.50,\n  \"b\": [ ]\n}\n"},
		{`{"a": "\u003ckept\u003e"}`, `{"a": "\u003ckept\u003e"}`},
	} {
		got, err := redactedJSON(c.in, redactionOf(t, "/zeno/"))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", c.in, got, err, c.want)
		}
	}
	if got, err := redactedJSON(`["LANG=C UTF"]`, redactionOf(t, "environment")); err != nil || string(got) != `["LANG=[redacted]"]` {
		t.Errorf("%s, %v", got, err)
	}
	for _, broken := range []string{`"x`, `{"a": "\u00zz"}`, `"\`} {
		if got, err := redactedJSON(broken, redactionOf(t, "/zeno/")); err == nil {
			t.Errorf("%s: %s", broken, got)
		}
	}
}

func TestRedactedLines(t *testing.T) {
	var b strings.Builder
	f := redactFlag{redaction: redactionOf(t, "/zeno/"), redactor: redactionOf(t, "/zeno/").Redactor()}
	err := f.show(&b, false, func(w io.Writer) error {
		for _, part := range []string{"one ze", "no\nzeno", " password=x\n", "ze", "no"} {
			if _, err := w.Write([]byte(part)); err != nil {
				return err
			}
		}
		return nil
	})
	if want := "one [redacted]\n[redacted] password=[redacted]\n[redacted]"; err != nil || b.String() != want {
		t.Errorf("%q, %v, want %q", b.String(), err, want)
	}
}

// private is a recording with a secret in each place that is shown.
func private(t *testing.T) string {
	t.Helper()
	dir := madeRecording(t)
	m, err := record.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Program.Path, m.Program.Directory = "/home/zeno/prog", "/home/zeno"
	m.Program.Args = record.Texts([]string{"prog", "--password", "hunter2", "--name=zeno"})
	m.Program.Environ = record.Texts([]string{"API_TOKEN=hunter2", "USER=zeno", "X=zeno\xff"})
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	log := strings.Replace(recordedLog, `"0123456789012345678901234567890123456789\x1b["`, `"zeno said: password=hunter2-hunter2-hunter2\x1b["`, 1)
	pid, events, err := eventlog.ReadText(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(dir, record.LogName))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := eventlog.WriteLog(file, pid, events); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Recorded data is shown unchanged. With --redact the output has neither secrets nor the values of
// the flag, in text and JSON.
func TestRedactRecordings(t *testing.T) {
	dir, store := private(t), filepath.Join(t.TempDir(), "corpus")
	if got := diagnose(t, nil, "corpus", "add", dir, "--corpus", store, "--label", "owner=zeno"); got.status != exitOK {
		t.Fatalf("%+v", got)
	}
	for _, c := range []struct {
		args    []string
		secrets bool // it shows some without the flag
	}{
		{[]string{"recording", "show", dir}, true},
		{[]string{"recording", "show", dir, "--events"}, true},
		{[]string{"recording", "show", dir, "--events", "--full"}, true},
		{[]string{"corpus", "list", "--corpus", store}, false},
	} {
		for _, format := range []string{"text", "json"} {
			args := append(c.args, "--format", format)
			open, closed := readable(diagnose(t, nil, args...)), readable(diagnose(t, nil, append(args, "--redact", "/zeno/")...))
			if open.status != exitOK || !strings.Contains(open.stdout, "zeno") || strings.Contains(open.stdout, "hunter2") != c.secrets {
				t.Errorf("%v: %+v", args, open)
			}
			if closed.status != exitOK || strings.Contains(closed.stdout+closed.stderr, "zeno") || strings.Contains(closed.stdout, "hunter2") || !strings.ContainsAny(closed.stdout, "[*") {
				t.Errorf("%v: %+v", args, closed)
			}
		}
	}
}

// readable adds to what a command shows the bytes that it shows in base64.
func readable(o outcome) outcome {
	for line := range strings.Lines(o.stdout) {
		for _, word := range strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(" \":,{}\n", c) }) {
			if data, err := base64.StdEncoding.DecodeString(word); err == nil {
				o.stdout += string(data) + "\n"
			}
		}
	}
	return o
}

func TestRedactReplays(t *testing.T) {
	crashtest.TracesAccesses(t)
	dir := replayable(t)
	home := filepath.Dir(filepath.Dir(dir))
	for _, format := range []string{"text", "json"} {
		open := diagnose(t, nil, "replay", dir, "--format", format)
		got := diagnose(t, nil, "replay", dir, "--format", format, "--redact", "/"+home+"/")
		if open.status != exitOK || !strings.Contains(open.stdout, home) || got.status != exitOK || strings.Contains(got.stdout, home) || !strings.Contains(got.stdout, "[redacted]") {
			t.Errorf("%s: %+v", format, got)
		}
		if format == "json" && !json.Valid([]byte(got.stdout)) {
			t.Errorf("%s", got.stdout)
		}
	}
	for _, args := range [][]string{{"replay", dir, "--redact", "/x/", "--echo"}, {"replay", dir, "--redact", "names"}, {"recording", "show", dir, "--redact", "names"},
		{"trace", "--recording", dir, "--watch", "x", "--redact", "names"}, {"corpus", "list", "--redact", "names"}, {"hunt", "--redact", "names", "--", "/bin/true"}, {"minimize", dir, "--redact", "names"}} {
		if got := diagnose(t, nil, args...); got.status != exitUsage || !strings.Contains(got.stderr, "--redact") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

func TestRedactTraces(t *testing.T) {
	crashtest.TracesAccesses(t)
	dir := traceable(t)
	for _, format := range []string{traceTable, traceJSON, traceChrome} {
		args := []string{"trace", "--recording", dir, "--watch", "guarded", "--format", format}
		open, got := diagnose(t, nil, args...), diagnose(t, nil, append(args, "--redact", "/guarded/")...)
		if open.status != exitOK || !strings.Contains(open.stdout, "guarded") || got.status != exitOK || strings.Contains(got.stdout, "guarded") || !strings.Contains(got.stdout, "names.c") {
			t.Errorf("%s: %+v", format, got)
		}
		if format != traceTable && !json.Valid([]byte(got.stdout)) {
			t.Errorf("%s: %s", format, got.stdout)
		}
	}
}

func TestRedactHunts(t *testing.T) {
	crashtest.TracesAccesses(t)
	exe, output := lockOrder(t), filepath.Join(t.TempDir(), "recordings")
	for _, format := range []string{"text", "json"} {
		got := diagnose(t, nil, "hunt", "--seeds", "200", "--output", output, "--format", format, "--redact", "/lock_order/", "--", exe, "--token", "hunter2")
		if got.status == exitInput {
			t.Skip(got.stderr)
		}
		if got.status != exitFailingSchedule || strings.Contains(got.stdout, "lock_order") || strings.Contains(got.stdout, "hunter2") || !strings.Contains(got.stdout, "[redacted]") {
			t.Errorf("%s: %+v", format, got)
		}
	}
}
