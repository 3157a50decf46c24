package realprograms

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"diagnose/agent"
)

// agentRun is the agent in one run of some programs, and the files it left.
type agentRun struct {
	setting
	library, witness string
	log, testimony   string
}

func newAgent(t testing.TB, s setting) *agentRun {
	t.Helper()
	dir := t.TempDir()
	return &agentRun{
		setting: s, library: library(t), witness: witness(t),
		log: filepath.Join(dir, "log"), testimony: filepath.Join(dir, "testimony"),
	}
}

func (a *agentRun) env() []string {
	options := "log_path=" + a.log
	if a.options != "" {
		options = a.options + ":" + options
	}
	return []string{
		"LD_PRELOAD=" + a.library + " " + a.witness,
		"DIAGNOSE_OPTIONS=" + options,
		"WITNESS=" + a.testimony,
	}
}

// statement is a line of testdata/witness.c.
type statement struct {
	exits               bool
	program             string
	loaded              bool
	allocations, errors uint64
}

func (a *agentRun) statements(t testing.TB) []statement {
	t.Helper()
	text, err := os.ReadFile(a.testimony)
	if err != nil {
		t.Fatalf("the witness was in no process: %v", err)
	}
	var all []statement
	for line := range strings.Lines(string(text)) {
		var s statement
		var when string
		var loaded int
		if _, err := fmt.Sscan(line, &when, &s.program, &loaded, &s.allocations, &s.errors); err != nil {
			t.Fatalf("witness: %q: %v", line, err)
		}
		s.exits, s.loaded = when == "exit", loaded != 0
		all = append(all, s)
	}
	return all
}

// complaints are the agent's reports, and the programs in which it did not work.
func (a *agentRun) complaints(t testing.TB, programs []string) []string {
	t.Helper()
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if text, err := os.ReadFile(a.log); err == nil && len(text) > 0 {
		add("the agent reports:\n%s", tail(string(text)))
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	loaded, exits, allocations := map[string]bool{}, map[string]bool{}, map[string]uint64{}
	for _, s := range a.statements(t) {
		if s.errors > 0 {
			add("%s: the agent found %d errors", s.program, s.errors)
		}
		name := filepath.Base(s.program)
		loaded[name] = loaded[name] || s.loaded || other != ""
		// At its start a program has not allocated much.
		if s.exits {
			exits[name] = true
			allocations[name] += s.allocations
		}
	}
	for _, p := range programs {
		p = executable(p)
		switch {
		case !loaded[p]:
			add("the agent was not inside %s, only in %v", p, slices.Sorted(maps.Keys(loaded)))
		case exits[p] && allocations[p] < 2 && other == "":
			add("%s: nothing was asked of the agent", p)
		}
	}
	return all
}

// other is the path of another library that is preloaded instead of the
// agent: what differs with any allocator is not the agent's fault.
var other = os.Getenv("DIAGNOSE_PRELOAD")

// library is the path of the preloaded library.
func library(t testing.TB) string {
	t.Helper()
	if other != "" {
		return other
	}
	path, err := agent.Library(t.Context())
	var unsupported *agent.UnsupportedError
	switch {
	case errors.As(err, &unsupported):
		t.Skip(err.Error())
	case err != nil:
		t.Fatal(err)
	}
	return path
}

var buildWitness = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "realprograms-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "witness.so")
	out, err := exec.Command("gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
		"-I../../agent/src", "-o", path, "testdata/witness.c").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("witness.c: %w\n%s", err, out)
	}
	return path, nil
})

func witness(t testing.TB) string {
	t.Helper()
	path, err := buildWitness()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMain(m *testing.M) {
	code := m.Run()
	writeTable()
	if built != "" {
		os.RemoveAll(built)
	}
	if path, err := buildWitness(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}
