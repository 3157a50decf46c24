package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"diagnose/probe"
	"diagnose/replay"
)

// TestProbeForms: the three forms have the same rows.
func TestProbeForms(t *testing.T) {
	dir := traceable(t)
	args := []string{"probe", "--recording", dir, "--on-call", "add", "--on-return", "add", "--print", "guarded, cfg.workers[1].state", "--verify"}
	table := diagnose(t, nil, args...)
	if table.status != exitOK || table.stderr != "" {
		t.Fatalf("status %d\n%s%s", table.status, table.stdout, table.stderr)
	}
	for _, want := range []string{"Moment", "guarded  cfg.workers[1].state", "return of add", "call add: add names.c:", "the replay ended identical to the recording"} {
		if !strings.Contains(table.stdout, want) {
			t.Errorf("%q is missing in\n%s", want, table.stdout)
		}
	}
	var shown shownProbe
	if err := json.Unmarshal([]byte(diagnose(t, nil, append(args, "--format", "json")...).stdout), &shown); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(diagnose(t, nil, append(args, "--format", "csv")...).stdout)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(shown.Rows) == 0 || len(rows) != len(shown.Rows)+1 || shown.Identical == nil || !*shown.Identical {
		t.Fatalf("%d rows in JSON, %d lines of CSV, identical %v", len(shown.Rows), len(rows), shown.Identical)
	}
	for i, r := range shown.Rows {
		line := rows[i+1]
		if line[0] != r.Moment || line[5] != r.Values[0].Value.Text || line[6] != r.Values[1].Value.Text || !strings.Contains(table.stdout, r.Moment) {
			t.Errorf("row %d is %+v in JSON and %q in CSV", i, r, line)
		}
	}
}

// TestProbeUnseen: the last lines and the JSON tell the returns that have no row.
func TestProbeUnseen(t *testing.T) {
	r := &probeReport{log: &probe.Log{Replay: &replay.Result{}, Places: []probe.Place{
		{Kind: probe.KindReturn, Asked: "f", PC: 1, Hits: 4, Missed: 1, Left: 2}, {Kind: probe.KindReturn, Asked: "g", PC: 2, Hits: 1}}}}
	var text strings.Builder
	if err := r.table(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"reached 4 times, 1 return could not be observed, 2 calls had no return that was seen\n", "reached 1 time\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &text)
		}
	}
	if s := r.shown(); s.Places[0].Missed != 1 || s.Places[0].Left != 2 || s.Places[1].Missed+s.Places[1].Left != 0 {
		t.Errorf("%+v", s.Places)
	}
}

// TestProbeMistakes: a wrong question has the status of a wrong command line, before anything runs.
func TestProbeMistakes(t *testing.T) {
	dir := traceable(t)
	for _, args := range [][]string{{}, {"--recording", dir}, {"--recording", dir, "--at", "names.c"}, {"--recording", dir, "--at", "names.c:1"}, {"--recording", dir, "--on-call", "nothing"},
		{"--recording", dir, "--on-call", "add", "--print", "1 +"}, {"--recording", dir, "--on-call", "add", "--if", "nothing"}, {"--recording", dir, "--on-syscall", "nothing"},
		{"--recording", dir, "--on-call", "add", "--max", "-1"}, {"--recording", dir, "--on-call", "add", "--format", "xml"}, {"--recording", dir, "--on-call", "add", "more"}} {
		if got := diagnose(t, nil, append([]string{"probe"}, args...)...); got.status != exitUsage || got.stdout != "" || got.stderr == "" {
			t.Errorf("%q: status %d\n%s%s", args, got.status, got.stdout, got.stderr)
		}
	}
	if got := diagnose(t, nil, "probe", "--recording", t.TempDir(), "--on-call", "add"); got.status != exitInput {
		t.Errorf("no recording: status %d, %s", got.status, got.stderr)
	}
}

// TestProbeCode: debug code prints to the answer, and its failures name its lines, in all forms.
func TestProbeCode(t *testing.T) {
	dir := traceable(t)
	file := filepath.Join(t.TempDir(), "code.c")
	if err := os.WriteFile(file, []byte("static int n;\nat names.c:"+guardedLine(t)+" {\n if (!n++)\n  printf(\"guarded %ld\\n\", guarded);\n else if (n == 2)\n  guarded = 7;\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"probe", "--recording", dir, "--code", file, "--verify"}
	table := diagnose(t, nil, args...)
	if table.status != exitOK || table.stderr != "" || !strings.HasPrefix(table.stdout, "guarded 0\n[") {
		t.Fatalf("status %d\n%s%s", table.status, table.stdout, table.stderr)
	}
	for _, want := range []string{"code.c:6: a store to the program's memory at 0x", "in a process of its own, failed 1 time", "the replay ended identical to the recording"} {
		if !strings.Contains(table.stdout, want) {
			t.Errorf("%q is missing in\n%s", want, table.stdout)
		}
	}
	var shown shownProbe
	if err := json.Unmarshal([]byte(diagnose(t, nil, append(args, "--format", "json")...).stdout), &shown); err != nil {
		t.Fatal(err)
	}
	if len(shown.Rows) != 2 || shown.Rows[0].Printed != "guarded 0\n" || len(shown.Code) != 1 || shown.Code[0].Failure == nil || shown.Code[0].Failure.Kind != "store" || shown.Code[0].Failure.Line != 6 {
		t.Errorf("%+v", shown)
	}
	csv := diagnose(t, nil, append(args, "--format", "csv")...).stdout
	if !strings.Contains(csv, "Printed") || !strings.Contains(csv, "guarded 0") {
		t.Error(csv)
	}
	for _, text := range []string{"", "at names.c:1 { }", "at names.c:" + guardedLine(t) + " { nothing(); }"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := diagnose(t, nil, args...); got.status != exitUsage || got.stdout != "" || !strings.Contains(got.stderr, "code.c:") && text != "" {
			t.Errorf("%q: status %d\n%s%s", text, got.status, got.stdout, got.stderr)
		}
	}
}

// TestProbeCodeCalls: a call of a function of the program that does not return is told with its line and reason.
func TestProbeCodeCalls(t *testing.T) {
	dir := traceable(t)
	file := filepath.Join(t.TempDir(), "code.c")
	if err := os.WriteFile(file, []byte("static int n;\nat names.c:"+guardedLine(t)+" {\n if (!n++)\n  add((void *)1);\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"probe", "--recording", dir, "--code", file, "--verify"}
	table := diagnose(t, nil, args...)
	for _, want := range []string{"code.c:4: a call of add, in a copy of the program, failed: it ", "the replay ended identical to the recording"} {
		if table.status != exitOK || !strings.Contains(table.stdout, want) {
			t.Errorf("status %d, %q is missing in\n%s%s", table.status, want, table.stdout, table.stderr)
		}
	}
	var shown shownProbe
	if err := json.Unmarshal([]byte(diagnose(t, nil, append(args, "--format", "json")...).stdout), &shown); err != nil {
		t.Fatal(err)
	}
	if len(shown.Code) != 1 || shown.Code[0].Failure == nil || shown.Code[0].Failure.Kind != "called" || shown.Code[0].Failure.Name != "add" {
		t.Errorf("%+v", shown)
	}
}

// guardedLine is the number of the line of names.c that adds to guarded.
func guardedLine(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../internal/testdata/trace/names.c")
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(data), "guarded +=")
	if !found {
		t.Fatal("names.c does not add to guarded")
	}
	return strconv.Itoa(1 + strings.Count(before, "\n"))
}
