package image

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image/object"
	"diagnose/internal/crashtest"
)

// threadsSource crashes in one of three threads. local holds another value in
// each thread; marker is a known value that tests look for in memory.
const threadsSource = `
#include <pthread.h>
#include <unistd.h>
int marker = 0x5eed;
static pthread_barrier_t barrier;
__thread char before;
__thread long local = 1;
static void *waits(void *arg)
{
	local = (long)arg;
	pthread_barrier_wait(&barrier);
	sleep(100);
	return 0;
}
__attribute__((noinline)) void fails(int *p)
{
	*p = marker; /* fails here */
}
int main(void)
{
	pthread_t t[2];
	pthread_barrier_init(&barrier, 0, 3);
	for (long i = 0; i < 2; i++)
		pthread_create(&t[i], 0, waits, (void *)(i + 10));
	pthread_barrier_wait(&barrier);
	fails((int *)0x18);
	return 0;
}
`

func threadsProgram(t testing.TB, flags ...string) string {
	t.Helper()
	return crashtest.Compile(t, crashtest.Program{Source: "threads.c", Text: threadsSource, Flags: append(flags, "-pthread")})
}

// tinySource makes the smallest possible core: no libraries, one thread.
const tinySource = `
int marker = 0x5eed;
void _start(void) { *(volatile int *)8 = marker; }
`

func tinyCore(t testing.TB) string {
	t.Helper()
	exe := crashtest.Compile(t, crashtest.Program{Source: "tiny.c", Text: tinySource, Flags: []string{"-nostdlib", "-static"}})
	return crashtest.Core(t, exe, crashtest.Run{})
}

func open(t testing.TB, path string, opts Options) *Process {
	t.Helper()
	p, err := OpenCore(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// lineOf returns the number of the source line that holds a text.
func lineOf(t testing.TB, source, text string) int {
	t.Helper()
	before, _, ok := strings.Cut(source, text)
	if !ok {
		t.Fatalf("no %q in the source", text)
	}
	return strings.Count(before, "\n") + 1
}

func buildID(t testing.TB, path string) string {
	t.Helper()
	f, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.BuildID() == "" {
		t.Fatalf("%s has no build-id", path)
	}
	return f.BuildID()
}

func severe(p *Process) []string {
	var list []string
	for _, l := range p.AllLimits() {
		if l.Severe {
			list = append(list, l.Text)
		}
	}
	return list
}

func wantLimit(t testing.TB, p *Process, isSevere bool, parts ...string) {
	t.Helper()
	for _, l := range p.AllLimits() {
		if l.Severe == isSevere && containsAll(l.Text, parts) {
			return
		}
	}
	t.Errorf("no limit (severe: %v) with %q among %+v", isSevere, parts, p.AllLimits())
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// global reads a 4-byte variable by its ELF symbol.
func global(t testing.TB, p *Process, name string) uint32 {
	t.Helper()
	s, ok := p.SymbolNamed(name)
	if !ok {
		t.Fatalf("no symbol %s", name)
	}
	v, err := Uint32(p, s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func wantFormatError(t testing.TB, err error, part string) {
	t.Helper()
	var format *object.FormatError
	if !errors.As(err, &format) {
		t.Fatalf("error %v is no FormatError", err)
	}
	if !strings.Contains(err.Error(), part) {
		t.Errorf("error %q does not say %q", err, part)
	}
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o755); err != nil {
		t.Fatal(err)
	}
}

// exercise calls every method of a process, to find panics.
func exercise(p *Process) {
	for i := range p.Threads {
		t := &p.Threads[i]
		p.Symbolize(t.Registers.PC(), AtInstruction)
		p.Symbolize(t.Registers.PC(), ReturnAddress)
		p.Place(t.Registers.SP())
		for _, m := range p.Modules {
			p.ThreadLocal(t, m)
		}
	}
	for i := range p.Mappings {
		m := &p.Mappings[i]
		var b [64]byte
		p.ReadMemory(m.Start, b[:])
		p.ReadMemory(m.End-32, b[:])
		for _, addr := range []evidence.Addr{m.Start, m.Start - 1, m.End, m.End - 1} {
			p.Place(addr)
			p.SymbolAt(addr)
		}
	}
	p.SymbolNamed("main")
	p.AllLimits()
}

func path(t testing.TB, name string) string { return filepath.Join(t.TempDir(), name) }

func compileText(t testing.TB, name, text string, flags ...string) string {
	t.Helper()
	return crashtest.Compile(t, crashtest.Program{Source: name, Text: text, Flags: flags})
}
