// Package allocatortest compares what a reader of a heap says with what a program wrote down of its own
// allocations.
package allocatortest

import (
	"os"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/crashtest"
)

// Library is a way to give a program an allocator.
type Library struct {
	Name string
	// Flags are the linker's, Preload is a library for LD_PRELOAD; File must exist.
	Flags   []string
	Preload string
	File    string
}

const libraries = "/usr/lib/x86_64-linux-gnu/"

// Jemalloc and Tcmalloc are the ways that the packages of Debian allow.
var (
	Jemalloc = []Library{
		{Name: "shared", Flags: []string{"-Wl,--no-as-needed", "-ljemalloc"}, File: libraries + "libjemalloc.so"},
		{Name: "preload", Preload: libraries + "libjemalloc.so.2", File: libraries + "libjemalloc.so.2"},
		{Name: "static", Flags: []string{libraries + "libjemalloc.a", "-lstdc++", "-lm", "-ldl"}, File: libraries + "libjemalloc.a"},
		{Name: "static-stripped", Flags: []string{libraries + "libjemalloc.a", "-lstdc++", "-lm", "-ldl", "-s"}, File: libraries + "libjemalloc.a"},
	}
	Tcmalloc = []Library{
		{Name: "shared-minimal", Flags: []string{"-Wl,--no-as-needed", "-ltcmalloc_minimal"}, File: libraries + "libtcmalloc_minimal.so"},
		{Name: "shared", Flags: []string{"-Wl,--no-as-needed", "-ltcmalloc"}, File: libraries + "libtcmalloc.so"},
		{Name: "preload", Preload: libraries + "libtcmalloc_minimal.so.4", File: libraries + "libtcmalloc_minimal.so.4"},
		{Name: "static", Flags: []string{libraries + "libtcmalloc_minimal.a", "-lstdc++", "-lm"}, File: libraries + "libtcmalloc_minimal.a"},
		{Name: "static-stripped", Flags: []string{libraries + "libtcmalloc_minimal.a", "-lstdc++", "-lm", "-s"}, File: libraries + "libtcmalloc_minimal.a"},
	}
)

// Need skips the test if the library is not installed.
func (l *Library) Need(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(l.File); err != nil {
		t.Skipf("%s is not installed", l.File)
	}
}

// Env is the environment of the program.
func (l *Library) Env() []string {
	if l.Preload == "" {
		return nil
	}
	return []string{"LD_PRELOAD=" + l.Preload}
}

// Ledger crashes the program that writes down its allocations, and opens the core.
func Ledger(t *testing.T, l *Library, compiler string, flags ...string) (*image.Process, []Event) {
	t.Helper()
	l.Need(t)
	exe := crashtest.Compile(t, crashtest.Program{Source: "../allocator/allocatortest/testdata/ledger.c", Compiler: compiler,
		Output: "ledger", Flags: append(append([]string{"-pthread", "-rdynamic"}, flags...), l.Flags...)})
	p, err := image.OpenCore(crashtest.Core(t, exe, crashtest.Run{Env: l.Env()}), image.Options{Exe: exe})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p, events(t, p)
}

// Event is a call of malloc, with the size that the program may use, or one of free if Size is 0.
type Event struct {
	At   evidence.Addr
	Size uint64
}

// events reads what the program wrote down.
func events(t *testing.T, p *image.Process) []Event {
	t.Helper()
	start, found := p.SymbolNamed("events")
	counter, foundCount := p.SymbolNamed("event_count")
	if !found || !foundCount {
		t.Fatal("the program has no list of events")
	}
	count, err := image.Uint64(p, counter.Addr)
	if err != nil || count == 0 || count > start.Size/16 {
		t.Fatalf("%d events, %v", count, err)
	}
	list := make([]Event, count)
	for i := range list {
		raw, err := image.Struct[[2]uint64](p, start.Addr+evidence.Addr(16*i))
		if err != nil {
			t.Fatal(err)
		}
		list[i] = Event{evidence.Addr(raw[0]), raw[1]}
	}
	return list
}
