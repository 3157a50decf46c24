package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"diagnose/agent"
	"diagnose/internal/crashtest"
	"diagnose/reports"
)

// underAgent is the environment of a run under the agent.
func underAgent(t *testing.T) []string {
	t.Helper()
	return []string{"LD_PRELOAD=" + builtLibrary(t), agent.OptionsVariable + "="}
}

// builtLibrary builds the agent's library, so that no command says that it compiles it.
func builtLibrary(t *testing.T) string {
	t.Helper()
	library, err := agent.Library(context.Background())
	var unsupported *agent.UnsupportedError
	if errors.As(err, &unsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return library
}

const overrunName = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char *volatile kept;
__attribute__((noinline)) static char *copy(const char *name)
{
	return memcpy(malloc(strlen(name)), name, strlen(name) + 1);
}
int main(int argc, char **argv)
{
	kept = copy("password=" "hun" "ter2");
	if (argc == 1)
		abort();
	puts("here");
	fflush(stdout);
	return getchar();
}
`

func nameProgram(t *testing.T) string {
	t.Helper()
	return crashtest.Compile(t, crashtest.Program{Source: "name.c", Text: overrunName, Flags: []string{"-O0"}})
}

// validHeap checks a summary against its schema.
func validHeap(t *testing.T, text string) *reports.HeapDocument {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile("../../reports/schema/heap-1.json")
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Error(err)
	}
	var doc reports.HeapDocument
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return &doc
}

func TestHeapOfCore(t *testing.T) {
	core := crashtest.Core(t, nameProgram(t), crashtest.Run{Env: underAgent(t)})
	got := diagnose(t, nil, "heap", "--core", core, "--timings")
	if got.status != exitOK {
		t.Fatalf("status %d: %s", got.status, got.stderr)
	}
	for _, want := range []string{"16 bytes in 1 object", "copy <- main", "name.c:8", "heap overflow: 1 byte past the end of a 16-byte object", "1 object\n"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("the summary lacks %q:\n%s", want, got.stdout)
		}
	}
	if !strings.Contains(got.stderr, "check") {
		t.Errorf("no times: %q", got.stderr)
	}
	doc := validHeap(t, diagnose(t, nil, "heap", "--core", core, "--json").stdout)
	if doc.Heap.LiveObjects != 1 || doc.Heap.Damaged != 1 || len(doc.Heap.Findings) != 1 {
		t.Errorf("%+v", doc.Heap)
	}
	checkPassword(t, core)
}

// checkPassword checks that the object's bytes, which hold a password, precede the damage and are
// shown only if asked for.
func checkPassword(t *testing.T, core string) {
	t.Helper()
	const secret = "68756e74657232"               // hunter2
	marks := regexp.MustCompile(`<[^>]*>|[ \[|]`) // of a page's table, and of the text's
	plain := func(text string) string { return marks.ReplaceAllString(text, "") }
	for _, format := range reports.Formats() {
		for _, command := range []string{"heap", "crash"} {
			text := diagnose(t, nil, command, "--core", core, "--format", format).stdout
			if strings.Contains(text, "hunter2") || strings.Contains(plain(text), secret) {
				t.Errorf("%s --format %s shows the password:\n%s", command, format, text)
			}
			// SARIF has no memory in it.
			if format == string(reports.SARIF) {
				continue
			}
			if open := diagnose(t, nil, command, "--core", core, "--format", format, "--show-secrets").stdout; !strings.Contains(plain(open), secret) {
				t.Errorf("%s --format %s hides the requested text", command, format)
			}
		}
	}
}

func TestHeapOfLiveProcess(t *testing.T) {
	cmd := exec.Command(nameProgram(t), "wait")
	cmd.Env = append(os.Environ(), underAgent(t)...)
	startWaiting(t, cmd)
	got := diagnose(t, nil, "heap", "--pid", strconv.Itoa(cmd.Process.Pid), "--json")
	if got.status == exitInput && strings.Contains(got.stderr, "may not be traced") {
		t.Skip("not supported here: ", got.stderr)
	}
	if got.status != exitOK {
		t.Fatalf("status %d: %s", got.status, got.stderr)
	}
	// The standard output's buffer is an object as well.
	if doc := validHeap(t, got.stdout); doc.Heap.Program.Source != "live" || doc.Heap.LiveObjects < 2 || doc.Heap.Damaged != 1 {
		t.Errorf("%+v", doc.Heap)
	}
}

// bare is a program without the C library.
const bare = `void _start(void) { __builtin_trap(); }`

// TestHeapOfMalloc: without the agent the heap is malloc's.
func TestHeapOfMalloc(t *testing.T) {
	core := crashtest.Core(t, nameProgram(t), crashtest.Run{})
	got := diagnose(t, nil, "heap", "--core", core)
	if got.status != exitOK || !strings.Contains(got.stdout, "24 bytes in 1 object") || !strings.Contains(got.stdout, "unreachable") || !strings.Contains(got.stdout, "By type") {
		t.Errorf("status %d: %s%s", got.status, got.stderr, got.stdout)
	}
	doc := validHeap(t, diagnose(t, nil, "heap", "--core", core, "--json").stdout)
	if h := doc.Heap; h.LiveObjects != 1 || h.AgentHeap != nil || h.Malloc == nil || len(h.Malloc.Largest) != 1 || h.Malloc.Largest[0].Holder == nil {
		t.Errorf("%+v", h)
	}
}

func TestHeapErrors(t *testing.T) {
	core := crashtest.Core(t, crashtest.Compile(t, crashtest.Program{Source: "bare.c", Text: bare, Flags: []string{"-nostdlib", "-static", "-fno-stack-protector"}}), crashtest.Run{})
	for _, x := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"heap"}, exitUsage, "nothing to look at"},
		{[]string{"heap", "--core", core}, exitInput, "the process ran without the agent"},
		{[]string{"heap", "--core", core}, exitInput, "LD_PRELOAD=$(diagnose agent path)"},
		{[]string{"heap", "--core", core, "--sites", "-1"}, exitUsage, "--sites takes a whole number from 0 on, not -1"},
		{[]string{"heap", "--core", core, "--json", "--format", "text"}, exitUsage, "--json and --format text exclude each other"},
		{[]string{"heap", "--core", core, "--format", "xml"}, exitUsage, `--format takes text, markdown, json, html or sarif, not "xml"`},
		{[]string{"heap", core}, exitUsage, "did you mean --core " + core},
	} {
		if got := diagnose(t, nil, x.args...); got.status != x.status || !strings.Contains(got.stderr, x.says) || got.stdout != "" {
			t.Errorf("diagnose %s: status %d, want %d; stderr %q, want %q in it", strings.Join(x.args, " "), got.status, x.status, got.stderr, x.says)
		}
	}
}
