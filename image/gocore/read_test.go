package gocore

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

const crasher = `package main

import (
	"os"
	"sync"
)

type session struct{ user, n *int }

//go:noinline
func deref(s *session) int { return *s.n }

//go:noinline
func write(m map[string]int) { m["a"] = 1 }

type failure struct{ code int }

func (failure) Error() string { return "disk full" }

func main() {
	ready := make(chan bool)
	for range 3 {
		go func() { ready <- true; select {} }()
		<-ready
	}
	switch os.Args[1] {
	case "map":
		write(nil)
	case "nil":
		deref(nil)
	case "error":
		panic(failure{7})
	case "goroutine":
		var group sync.WaitGroup
		group.Add(1)
		go func() { defer group.Done(); write(nil) }()
		group.Wait()
	case "asleep":
		var mu sync.Mutex
		mu.Lock()
		mu.Lock()
	}
}
`

func build(t *testing.T) string {
	t.Helper()
	return buildGo(t, crasher, "0")
}

func buildGo(t *testing.T, text, cgo string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "crasher.go")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "crasher")
	cmd := exec.Command("go", append(append([]string{"build", "-o", exe}, flags...), source)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GO111MODULE=off", "CGO_ENABLED="+cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return exe
}

func TestPanics(t *testing.T) {
	exe := build(t)
	tests := []struct {
		how      string
		kind     evidence.FailureKind
		what     string
		typ      string
		function string
	}{
		{"map", evidence.GoPanic, "assignment to entry in nil map", "runtime.Error", "main.write"},
		{"nil", evidence.GoPanic, "runtime error: invalid memory address or nil pointer dereference", "runtime.Error", "main.deref"},
		{"error", evidence.GoPanic, "disk full", "", "main.main"},
		{"goroutine", evidence.GoPanic, "assignment to entry in nil map", "runtime.Error", "main.write"},
		{"asleep", evidence.Deadlock, "all goroutines are asleep - deadlock!", "fatal error", "main.main"},
	}
	for _, test := range tests {
		t.Run(test.how, func(t *testing.T) {
			if test.how == "nil" {
				crashtest.NeedKernelCores(t) // gdb stops at the signal, before the runtime makes a panic of it
			}
			core := crashtest.Core(t, exe, crashtest.Run{Args: []string{test.how}, Env: []string{"GOTRACEBACK=crash"}})
			r, err := Read(Options{Core: core, Exe: exe})
			if err != nil {
				t.Fatal(err)
			}
			f := r.Failure
			if f == nil || f.Exception == nil {
				t.Fatalf("no failure found: %+v, limits %v", f, r.Limits)
			}
			if f.Kind != test.kind || f.Exception.What != test.what || f.Exception.Type != test.typ {
				t.Errorf("got %s %q %q, want %s %q %q", f.Kind, f.Exception.Type, f.Exception.What, test.kind, test.typ, test.what)
			}
			if f.Site == nil || f.Site.Function != test.function {
				t.Errorf("site is %+v, want %s", f.Site, test.function)
			}
			if !strings.Contains(f.Sentence, test.what) || !strings.Contains(f.Sentence, test.function) {
				t.Errorf("sentence %q", f.Sentence)
			}
			t.Log(f.Sentence)
			checkGoroutines(t, r)
		})
	}
}

func checkGoroutines(t *testing.T, r *Result) {
	t.Helper()
	parked := 0
	for _, g := range r.Goroutines {
		if g.Status == "" || len(g.Stack.Frames) == 0 {
			t.Errorf("goroutine %d: status %q, %d frames", g.ID, g.Status, len(g.Stack.Frames))
		}
		if g.Wait == "select (no cases)" {
			parked++
			if !strings.HasPrefix(programSite(&g.Stack).Function, "main.main.func1") {
				t.Errorf("goroutine %d parked in %s", g.ID, programSite(&g.Stack).Function)
			}
		}
	}
	if parked != 3 {
		t.Errorf("%d goroutines wait in an empty select, want 3", parked)
	}
}

func TestBounds(t *testing.T) {
	exe := build(t)
	core := crashtest.Core(t, exe, crashtest.Run{Args: []string{"map"}, Env: []string{"GOTRACEBACK=crash"}})
	r, err := Read(Options{Core: core, Exe: exe, Goroutines: 2, Depth: 3})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Goroutines) > 2 || len(r.Limits) == 0 {
		t.Errorf("%d goroutines, limits %v", len(r.Goroutines), r.Limits)
	}
	for _, g := range r.Goroutines {
		if len(g.Stack.Frames) > 4 {
			t.Errorf("goroutine %d has %d frames", g.ID, len(g.Stack.Frames))
		}
	}
}

// Damaged cores must end in an error or a partial result, not in a panic of
// the library.
func TestDamagedCore(t *testing.T) {
	exe := build(t)
	core := crashtest.Core(t, exe, crashtest.Run{Args: []string{"map"}, Env: []string{"GOTRACEBACK=crash"}})
	data, err := os.ReadFile(core)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 10, 64, 1000, 4096, 20000, len(data) / 2} {
		path := filepath.Join(t.TempDir(), "core")
		if err := os.WriteFile(path, data[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Read(Options{Core: path, Exe: exe})
		if err == nil && r == nil {
			t.Errorf("cut to %d bytes: neither result nor error", size)
		}
	}
	if _, err := Read(Options{Core: core, Exe: "/bin/true"}); err == nil {
		t.Error("a C program was read as one of Go")
	}
	if IsGo("/bin/true") || !IsGo(exe) {
		t.Error("Go programs are not told from others")
	}
}
