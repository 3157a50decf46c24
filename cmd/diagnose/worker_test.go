package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/corpus/nightly"
	"diagnose/fleet/engine"
	"diagnose/internal/crashtest"
)

// workerNight diagnoses a corpus with the command nightly, and returns its summary.
func workerNight(t *testing.T, tool string, status int, args ...string) *nightly.Summary {
	t.Helper()
	got := runTool(t, tool, append([]string{"nightly", "--since", "3650d", "--format", "json"}, args...)...)
	if got.status != status {
		t.Fatalf("%q: status %d, want %d: %s%s", args, got.status, status, got.stdout, got.stderr)
	}
	fits(t, "nightly", got.stdout)
	s := &nightly.Summary{}
	if err := json.Unmarshal([]byte(got.stdout), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// A worker finds in a recording what a night on the recording's host finds, and so does a night
// with workers of its own.
func TestWorker(t *testing.T) {
	crashtest.TracesAccesses(t)
	recording := overflowing(t, 0)
	tool := staticTool(t)
	server, err := engine.Start(t.Context(), engine.ServerOptions{Dir: filepath.Join(t.TempDir(), "engine"), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	digests := map[string]string{}
	for name, args := range map[string][]string{"alone": nil, "workers": {"--workers", "2"}, "engine": {"--engine", server.URL(), "--patience", "2m"}} {
		dir := filepath.Join(t.TempDir(), "corpus")
		t.Setenv(corpusVariable, dir)
		if got := diagnose(t, nil, "corpus", "add", recording); got.status != exitOK {
			t.Fatal(got.stderr)
		}
		done := make(chan string, 1)
		if name == "engine" {
			go func() {
				got := runTool(t, tool, "worker", "--engine", server.URL(), "--idle", "5s", "--dir", os.TempDir())
				if got.status != exitOK {
					got.stderr += " FAILED"
				}
				done <- got.stderr
			}()
		}
		s := workerNight(t, tool, exitNewCause, args...)
		if len(s.New) != 1 || s.New[0].Kind != "heap-overflow" || len(s.Undiagnosed)+len(s.Partial) != 0 || (s.Run.Fleet == nil) != (name == "alone") {
			t.Fatalf("%s: %+v", name, s)
		}
		if name != "engine" || !s.Run.Fleet.Workers[0].Confined { // in a private root there is no source, and places have numbers
			digests[s.New[0].Digest] = name
		}
		if name == "engine" {
			if log := <-done; strings.Contains(log, "FAILED") || !strings.Contains(log, ": diagnosed in ") || strings.Contains(log, server.URL()) {
				t.Errorf("%s", log)
			}
			if w := s.Run.Fleet.Workers[0]; !w.Confined {
				t.Errorf("not confined: %s", w.FreeWhy)
			}
			if strings.Contains(s.Run.Fleet.Engine, "@") {
				t.Errorf("the summary has the token: %s", s.Run.Fleet.Engine)
			}
		}
	}
	if len(digests) != 1 {
		t.Errorf("not one cause: %v", digests)
	}
}

// What is wrong with the engine is told, with the status of unusable input.
func TestWorkerRefused(t *testing.T) {
	for _, x := range []struct {
		status int
		say    string
		args   []string
	}{
		{exitUsage, "--engine", []string{"worker"}},
		{exitUsage, "is no URL of an engine", []string{"worker", "--engine", "http://localhost"}},
		{exitInput, "does not answer", []string{"worker", "--engine", "nats://127.0.0.1:1"}},
		{exitUsage, "--jobs", []string{"worker", "--engine", "nats://127.0.0.1:1", "--jobs", "0"}},
		{exitUsage, "leave out --engine", []string{"nightly", "--engine", "nats://127.0.0.1:1", "--workers", "2"}},
	} {
		if got := diagnose(t, nil, x.args...); got.status != x.status || !strings.Contains(got.stderr, x.say) {
			t.Errorf("%q: status %d: %s", x.args, got.status, got.stderr)
		}
	}
}
