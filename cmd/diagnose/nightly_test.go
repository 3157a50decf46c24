package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"diagnose/corpus/nightly"
	"diagnose/internal/crashtest"
)

// overflowing records a program that writes past the end of a heap object. The source begins with
// the given number of empty lines, as if it were a later version.
func overflowing(t *testing.T, lines int) string {
	t.Helper()
	text, err := os.ReadFile("../../internal/testdata/cause/heap_memcpy.c")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source, exe := filepath.Join(dir, "body.c"), filepath.Join(dir, "body")
	if err := os.WriteFile(source, append([]byte(strings.Repeat("\n", lines)), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-g", "-O0", "-o", exe, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := recordCommand(t, "--output", "recordings", "--", exe, "post")
	cmd.Stdin = strings.NewReader("24\nthe first chunk,\nand a second one that is too long.\n")
	cmd.Run() // it aborts
	names := recordings(t, cmd)
	if len(names) != 1 || !strings.HasSuffix(names[0], "SIGABRT") {
		t.Fatalf("recordings %q, want one that failed", names)
	}
	return filepath.Join(cmd.Dir, "recordings", names[0])
}

// fits checks a JSON document against its schema.
func fits(t *testing.T, name, document string) {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(schemaPath(name))
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(document))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := s.Validate(value); err != nil {
		t.Errorf("%s: %v\n%s", name, err, document)
	}
	if s.Validate(map[string]any{"version": "1.0"}) == nil {
		t.Errorf("%s: the schema asks for nothing", name)
	}
}

// From recordings to the summary of a night: two builds of one defect are one cause.
func TestNightly(t *testing.T) {
	crashtest.TracesAccesses(t)
	builds := []string{overflowing(t, 0), overflowing(t, 5)}
	core := crashed(t)
	dir, out := filepath.Join(t.TempDir(), "corpus"), filepath.Join(t.TempDir(), "out")
	t.Setenv(corpusVariable, dir)
	ok := func(status int, args ...string) string {
		t.Helper()
		got := diagnose(t, nil, args...)
		if got.status != status {
			t.Fatalf("%q: status %d, want %d: %s%s", args, got.status, status, got.stdout, got.stderr)
		}
		return got.stdout
	}
	ok(exitOK, "corpus", "add", builds[0], builds[1], core, "--label", "host=ci-1")
	if text := ok(exitOK, "corpus", "add", builds[0]); !strings.Contains(text, "was there") {
		t.Error(text)
	}
	got := diagnose(t, nil, "nightly", "--since", "3650d", "--out", out, "--format", "json", "--jobs", "2")
	if got.status != exitNewCause || strings.Count(got.stderr, "diagnose: ") != 3 || !strings.Contains(got.stderr, "3 of 3: ") || strings.Contains(got.stderr, "\r") {
		t.Fatalf("status %d: %s%s", got.status, got.stdout, got.stderr)
	}
	fits(t, "nightly", got.stdout)
	var s nightly.Summary
	if err := json.Unmarshal([]byte(got.stdout), &s); err != nil {
		t.Fatal(err)
	}
	if len(s.New) != 2 || len(s.Known)+len(s.Back)+len(s.Undiagnosed)+len(s.Partial) != 0 {
		t.Fatalf("%s", got.stdout)
	}
	overflow, login := s.New[0], s.New[1]
	if overflow.Count != 2 || !overflow.ByCause || overflow.Kind != "heap-overflow" || !strings.Contains(strings.Join(overflow.Lines, "\n"), "memcpy(r->body + r->received, chunk, n);") {
		t.Errorf("two builds of one defect: %+v", overflow)
	}
	if login.Count != 1 || login.ByCause || login.Kind != "null-pointer" || login.Program != "login" {
		t.Errorf("a core: %+v", login)
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(out, name))
		if err != nil || len(text) == 0 {
			t.Errorf("%s: %v", name, err)
		}
		return string(text)
	}
	for _, name := range []string{"summary.txt", "summary.json", "causes/" + overflow.Digest + ".md", "causes/" + login.Digest + ".json"} {
		read(name)
	}
	page := read("summary.html")
	for _, g := range s.New {
		to := "causes/" + g.Digest + ".html"
		if !strings.Contains(page, `href="`+to+`"`) || !strings.Contains(read(to), g.Program) {
			t.Errorf("the page does not lead to the report of %s", g.Kind)
		}
	}
	if text := ok(exitOK, "nightly", "--since", "3650d"); !strings.Contains(text, "0 new causes, 0 back, 2 known") || !strings.Contains(text, "nothing was left") {
		t.Error(text)
	}
	if page := ok(exitOK, "nightly", "--since", "3650d", "--format", "html"); !strings.HasPrefix(page, "<!DOCTYPE html>") || strings.Contains(page, `href="causes/`) ||
		!strings.Contains(page, "diagnose corpus show "+overflow.Example+" --report") {
		t.Errorf("%s", page)
	}

	fits(t, "corpus", ok(exitOK, "corpus", "list", "--format", "json"))
	fits(t, "corpus", ok(exitOK, "corpus", "list", "--clusters", "--format", "json"))
	fits(t, "corpus", ok(exitOK, "corpus", "show", overflow.Example, "--format", "json"))
	for args, says := range map[string]string{
		"list --label host=ci-1 --program body":       "heap-overflow, proved",
		"list --program nothing":                      "no failures",
		"list --cluster " + login.Digest[:8]:          "null-pointer",
		"list --clusters":                             overflow.Digest[:shortID],
		"show " + overflow.Example:                    "host=ci-1",
		"show " + overflow.Digest[:10]:                "at receive: memcpy",
		"show " + overflow.Example[:8] + " --report":  "heap overflow",
		"gc --keep 0s --examples 1 --dry-run":         "would remove the files of 1 failures",
		"gc --keep 30d":                               "removed the files of 0 failures",
		"fix " + overflow.Digest[:10] + " --note 1.4": "",
	} {
		if text := ok(exitOK, append([]string{"corpus"}, strings.Fields(args)...)...); !strings.Contains(text, says) {
			t.Errorf("corpus %s: %q is not in\n%s", args, says, text)
		}
	}
	if text := ok(exitOK, "corpus", "show", overflow.Digest); !strings.Contains(text, "fixed:") || !strings.Contains(text, "1.4") {
		t.Error(text)
	}
	ok(exitOK, "corpus", "reopen", overflow.Digest)

	archive := filepath.Join(t.TempDir(), "all.tar.zst")
	ok(exitOK, "corpus", "export", "--output", archive)
	other := filepath.Join(t.TempDir(), "other")
	if text := ok(exitOK, "corpus", "import", archive, "--corpus", other, "--format", "json"); strings.Join(strings.Fields(text), "") != `{"added":3,"existed":0}` {
		t.Error(text)
	}
	if a, b := ok(exitOK, "corpus", "list", "--clusters"), ok(exitOK, "corpus", "list", "--clusters", "--corpus", other); a != b {
		t.Errorf("%s\nbecame\n%s", a, b)
	}
	ok(exitOK, "corpus", "rm", login.Example, "--corpus", other)
	if text := ok(exitOK, "corpus", "list", "--corpus", other); strings.Contains(text, "login") {
		t.Error(text)
	}
}

func TestCorpusExitStatus(t *testing.T) {
	empty := t.TempDir()
	t.Setenv(corpusVariable, filepath.Join(empty, "none"))
	text := filepath.Join(empty, "text")
	if err := os.WriteFile(text, []byte("no core"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]struct {
		status int
		says   string
	}{
		"corpus list":            {exitInput, "is no corpus"},
		"nightly":                {exitInput, "is no corpus"},
		"corpus rm abc":          {exitInput, "is no corpus"},
		"corpus add":             {exitUsage, "takes recordings or cores"},
		"corpus add x --label y": {exitUsage, "key=value"},
		"corpus add missing":     {exitInput, "is no corpus"},
		"corpus add " + text + " --corpus " + filepath.Join(empty, "other"): {exitInput, "neither a recording nor a core"},
		"corpus add " + text + " --corpus " + empty:                         {exitInput, "is no corpus, and not empty"},
		"corpus add x --max-size 0":                                         {exitUsage, "--max-size"},
		"corpus list --format html":                                         {exitUsage, "text or json"},
		"corpus list --clusters --since 1d":                                 {exitUsage, "--clusters"},
		"corpus list --since yesterday":                                     {exitUsage, "takes a time"},
		"corpus gc --keep -1h":                                              {exitUsage, "takes a time"},
		"corpus show":                                                       {exitUsage, "one entry or cluster"},
		"corpus nothing":                                                    {exitUsage, "unknown command"},
		"corpus export":                                                     {exitUsage, "--output"},
		"corpus fix abc --at noon":                                          {exitUsage, "--at"},
		"nightly --jobs 0":                                                  {exitUsage, "--jobs"},
		"nightly --format sarif":                                            {exitUsage, "text, json or html"},
		"nightly --time 0s":                                                 {exitUsage, "--time"},
		"nightly x":                                                         {exitUsage, "unexpected argument"},
		"nightly --out " + text + " --jobs 1":                               {exitUsage, "--out"},
	} {
		got := diagnose(t, nil, strings.Fields(args)...)
		if got.status != want.status || !strings.Contains(got.stderr, want.says) {
			t.Errorf("%s: status %d, want %d; stderr %q, want %q in it", args, got.status, want.status, got.stderr, want.says)
		}
	}
	if got := diagnose(t, []byte("no archive"), "corpus", "import", "-", "--corpus", filepath.Join(empty, "new")); got.status != exitInput {
		t.Errorf("an archive that is none: status %d: %s", got.status, got.stderr)
	}
}

// The name of a failing program must not reach the terminal unescaped.
func TestHostileNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "corpus")
	exe := filepath.Join(t.TempDir(), "a\x1b[2J\u009b2J\u202e<b>")
	if err := os.WriteFile(exe, []byte("#!/bin/sh\nkill -SEGV $$\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := recordCommand(t, "--output", "recordings", "--", exe)
	cmd.Run()
	names := recordings(t, cmd)
	if len(names) != 1 {
		t.Fatalf("recordings %q, want one", names)
	}
	if got := diagnose(t, nil, "corpus", "add", filepath.Join(cmd.Dir, "recordings", names[0]), "--corpus", dir); got.status != exitOK {
		t.Fatalf("%+v", got)
	}
	for _, args := range [][]string{{"corpus", "list"}, {"corpus", "list", "--format", "json"}, {"nightly"}, {"corpus", "list", "--clusters"}, {"nightly", "--format", "json"}} {
		got := diagnose(t, nil, append(args, "--corpus", dir)...)
		if strings.ContainsAny(got.stdout+got.stderr, "\x1b\r\u009b\u202e") || got.stdout == "" {
			t.Errorf("%q: %q %q", args, got.stdout, got.stderr)
		}
	}
}

func TestDays(t *testing.T) {
	for text, want := range map[string]string{"30d": "720h0m0s", "90s": "1m30s", "1h30m": "1h30m0s", "0s": "0s"} {
		var d days
		if err := d.Set(text); err != nil || d.String() != want {
			t.Errorf("%s: %v, %v", text, &d, err)
		}
	}
	for _, text := range []string{"", "d", "-1d", "-5s", "99999999d", "3x"} {
		var d days
		if err := d.Set(text); err == nil {
			t.Errorf("%q is %v", text, &d)
		}
	}
}
