package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"diagnose/internal/crashtest"
)

// askedAbout has for each question what names.c has for it.
var askedAbout = map[string]string{"--last-write": "guarded", "--writes": "cfg.workers[1]", "--values": "guarded", "--calls": "add", "--executed": "names.c:31",
	"--did": "2", "--holders": "lock"}

// TestAskForms: each question has an answer in each form, and the JSON fits its schema.
func TestAskForms(t *testing.T) {
	crashtest.TracesAccesses(t)
	dir := traceable(t)
	s, err := jsonschema.NewCompiler().Compile(schemaPath("ask"))
	if err != nil {
		t.Fatal(err)
	}
	for question, what := range askedAbout {
		args := []string{"ask", "--recording", dir, question, what}
		text := diagnose(t, nil, args...)
		if text.status != exitOK || text.stderr != "" || !strings.Contains(text.stdout, "in the whole recording") || !strings.Contains(text.stdout, "replay") {
			t.Errorf("%s: status %d\n%s%s", question, text.status, text.stdout, text.stderr)
		}
		got := diagnose(t, nil, append(args, "--format", "json")...)
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(got.stdout))
		if err != nil {
			t.Fatalf("%s: %v", question, err)
		}
		if err := s.Validate(value); err != nil {
			t.Errorf("%s: %v\n%s", question, err, got.stdout)
		}
		page := filepath.Join(t.TempDir(), "page.html")
		if got := diagnose(t, nil, append(args, "--format", "html", "-o", page)...); got.status != exitOK || got.stdout != "" {
			t.Errorf("%s: status %d %s", question, got.status, got.stderr)
		}
		if data, err := os.ReadFile(page); err != nil || !strings.Contains(string(data), `<svg class="timeline"`) {
			t.Errorf("%s: no timeline in the page, %v", question, err)
		}
	}
}

// TestAskWrong: the mistake is named on standard error, with the status for it.
func TestAskWrong(t *testing.T) {
	dir := traceable(t)
	for _, x := range []struct {
		args []string
		want string
	}{
		{nil, "nothing is asked"},
		{[]string{"--calls", "add", "--did", "1"}, "2 questions are asked"},
		{[]string{"--calls", ""}, "--calls: it is empty"},
		{[]string{"--calls", "ad"}, "there is add"},
		{[]string{"--calls", "add", "--from", "add"}, "--from: "},
		{[]string{"--calls", "add", "--until", "77:1"}, "there is no such moment"},
		{[]string{"--calls", "add", "--max", "-1"}, "--max takes numbers"},
		{[]string{"--calls", "add", "more"}, "unexpected argument"},
	} {
		got := diagnose(t, nil, append([]string{"ask", "--recording", dir}, x.args...)...)
		if got.status != exitUsage || got.stdout != "" || !strings.Contains(got.stderr, x.want) {
			t.Errorf("%q: status %d, %q", x.args, got.status, got.stderr)
		}
	}
	if got := diagnose(t, nil, "ask", "--calls", "add"); got.status != exitUsage {
		t.Errorf("without a recording: status %d", got.status)
	}
	if got := diagnose(t, nil, "ask", "--recording", t.TempDir(), "--calls", "add"); got.status != exitInput {
		t.Errorf("of no recording: status %d", got.status)
	}
}

// TestProbeWrites: rows of writes in the forms of the command.
func TestProbeWrites(t *testing.T) {
	crashtest.TracesAccesses(t)
	dir := traceable(t)
	args := []string{"probe", "--recording", dir, "--on-write", "guarded", "--print", "guarded"}
	table := diagnose(t, nil, args...)
	if table.status != exitOK || !strings.Contains(table.stdout, "$old") || !strings.Contains(table.stdout, "add names.c:") {
		t.Errorf("status %d\n%s%s", table.status, table.stdout, table.stderr)
	}
	track := diagnose(t, nil, append(args, "--format", "perfetto")...)
	if track.status != exitOK || !strings.Contains(track.stdout, `"traceEvents"`) || !strings.Contains(track.stdout, `"cat":"write"`) {
		t.Errorf("status %d\n%s%s", track.status, track.stdout, track.stderr)
	}
	calls := diagnose(t, nil, "probe", "--recording", dir, "--on-call", "add", "--on-return", "add", "--format", "perfetto")
	if calls.status != exitOK || !strings.Contains(calls.stdout, `"ph":"X"`) {
		t.Errorf("status %d\n%s%s", calls.status, calls.stdout, calls.stderr)
	}
	for _, more := range [][]string{{"--on-call", "add"}, {"--verify"}} {
		if got := diagnose(t, nil, append(args, more...)...); got.status != exitUsage {
			t.Errorf("%q: status %d", more, got.status)
		}
	}
}
