package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/reports"
)

// A value of --redact is in no report, and in nothing that a night writes, sends to a tracker or
// prints.
func TestRedactFlag(t *testing.T) {
	core, dir := crashed(t), t.TempDir()
	const function = "handle_login"
	for _, format := range reports.Formats() {
		open := diagnose(t, nil, "crash", "--core", core, "--format", format)
		got := diagnose(t, nil, "crash", "--core", core, "--format", format, "--redact", "/"+function+"/", "--redact", "home")
		if got.status != exitOK || !strings.Contains(open.stdout, function) || strings.Contains(got.stdout, function) || !strings.Contains(got.stdout, "login.c") {
			t.Errorf("%s: status %d: %s%s", format, got.status, got.stdout, got.stderr)
		}
	}
	for _, args := range [][]string{{"crash", "--core", core}, {"nightly"}} {
		if got := diagnose(t, nil, append(args, "--redact", "names")...); got.status != exitUsage || !strings.Contains(got.stderr, "--redact") {
			t.Errorf("%+v", got)
		}
	}
	store, out := filepath.Join(dir, "corpus"), filepath.Join(dir, "out")
	if got := diagnose(t, nil, "corpus", "add", core, "--corpus", store); got.status != exitOK {
		t.Fatalf("%+v", got)
	}
	rules := filepath.Join(dir, "rules")
	if err := os.WriteFile(rules, []byte("/"+function+"/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	night := func(args ...string) outcome {
		return diagnose(t, nil, append([]string{"nightly", "--corpus", store, "--since", "3650d"}, args...)...)
	}
	got := night("--out", out, "--redact", "@"+rules)
	if got.status != exitNewCause || !strings.Contains(got.stdout, "[redacted]") || strings.Contains(got.stdout+got.stderr, function) {
		t.Errorf("%+v", got)
	}
	files := 0
	err := filepath.WalkDir(out, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		files++
		text, err := os.ReadFile(name)
		if strings.Contains(string(text), function) {
			t.Errorf("%s shows it", name)
		}
		return err
	})
	if err != nil || files < 8 { // three of the summary, three of the cause, and its issue
		t.Errorf("%d files, %v", files, err)
	}
	// The corpus keeps the value, so that clusters do not change.
	if got := night(); got.status != exitOK || !strings.Contains(got.stdout, function) {
		t.Errorf("%+v", got)
	}
	testRedactedEntry(t, store, function)
}

// testRedactedEntry shows the only entry of a corpus, which is diagnosed.
func testRedactedEntry(t *testing.T, store, function string) {
	var list shownCorpus
	got := diagnose(t, nil, "corpus", "list", "--corpus", store, "--format", "json")
	if err := json.Unmarshal([]byte(got.stdout), &list); err != nil || len(list.Entries) != 1 {
		t.Fatalf("%v: %+v", err, got)
	}
	for _, more := range [][]string{nil, {"--report"}} {
		for _, format := range []string{"text", "json"} {
			args := append([]string{"corpus", "show", list.Entries[0].ID, "--corpus", store, "--format", format}, more...)
			open, got := diagnose(t, nil, args...), diagnose(t, nil, append(args, "--redact", "/"+function+"/")...)
			if open.status != exitOK || !strings.Contains(open.stdout, function) || got.status != exitOK || strings.Contains(got.stdout, function) || !strings.Contains(got.stdout, "[redacted]") {
				t.Errorf("%q: %+v", args, got)
			}
		}
	}
}
