// Package recordtest builds small programs, records them and replays the
// recordings, for the tests of whoever takes part in that.
//
// A program is a C or C++ file under testdata/record. Comments in it say how it is
// built and run:
//
//	// FLAGS: -O0 -lm     for the compiler, besides -g -O2 -pthread
//	// ARGS: 4 1000       the program's arguments
//	// STDIN: some text   what it reads; nothing unless it says so
//	// ENDS: SIGSEGV      how it ends: a signal, "exit 3" or "exit 0"
//	// EVENTS: mutex 100  at least so many events of a kind; may be repeated
//	// REPLAYS: no WHY    it cannot be replayed, and why
//	// REPLAYS: to its end, WHY    not each replay is identical, and why; all reach the recorded end
package recordtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/replay/launch"
	"diagnose/replay/record"
	"diagnose/replay/recorder"
)

// Main runs the tests of a package that records. Call it from TestMain.
func Main(m *testing.M) {
	recorder.Init()
	os.Exit(m.Run())
}

// Program is a source file and what its comments say.
type Program struct {
	Source string
	Name   string // of the directory and the file: sync/mutex
	Flags  []string
	Args   []string
	Stdin  string
	Ends   string
	Events map[string]uint64
	// Never is why it cannot be replayed; empty: it can.
	Never string
	// Clang: it is compiled with clang.
	Clang bool
	// Varies is why the state of its other threads at the end may differ; empty:
	// it is identical.
	Varies string
}

// Programs are those in a directory, with all below it.
func Programs(t testing.TB, dir string) []*Program {
	t.Helper()
	var list []*Program
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".c" && filepath.Ext(path) != ".cc" {
			return err
		}
		p, err := Read(path)
		if err == nil && p.Ends != "" { // others are parts of programs
			list = append(list, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Fatalf("no programs in %s", dir)
	}
	return list
}

// Read reads what a source's comments say.
func Read(path string) (*Program, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &Program{Source: path, Name: filepath.Base(filepath.Dir(path)) + "/" + strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), Events: map[string]uint64{}}
	for s := bufio.NewScanner(f); s.Scan(); {
		name, value, found := strings.Cut(strings.TrimPrefix(s.Text(), "// "), ": ")
		if !found || !strings.HasPrefix(s.Text(), "// ") {
			continue
		}
		fields := strings.Fields(value)
		switch name {
		case "FLAGS":
			p.Flags = fields
		case "ARGS":
			p.Args = fields
		case "STDIN":
			p.Stdin = value + "\n"
		case "ENDS":
			p.Ends = value
		case "EVENTS":
			n, err := strconv.ParseUint(fields[len(fields)-1], 10, 64)
			if err != nil || len(fields) != 2 {
				return nil, fmt.Errorf("%s: EVENTS: %q", path, value)
			}
			p.Events[fields[0]] = n
		case "REPLAYS":
			if why, ok := strings.CutPrefix(value, "to its end, "); ok {
				p.Varies = why
			} else {
				p.Never = strings.TrimPrefix(value, "no ")
			}
		}
	}
	return p, nil
}

// Build compiles the program.
func (p *Program) Build(t testing.TB) string {
	t.Helper()
	compilers := map[string]string{".c": "cc", ".cc": "c++"}
	if p.Clang {
		compilers = map[string]string{".c": "clang", ".cc": "clang++"}
	}
	cc, err := exec.LookPath(compilers[filepath.Ext(p.Source)])
	if err != nil {
		t.Skip(err)
	}
	exe := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(p.Source), filepath.Ext(p.Source)))
	args := append([]string{"-g", "-O2", "-pthread", "-o", exe, p.Source}, p.Flags...)
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", p.Source, err, out)
	}
	return exe
}

// Recorded is a recording that was made.
type Recorded struct {
	Dir    string
	Result recorder.Result
	Output string // what the program wrote
	// Warnings are what the recorder told.
	Warnings []string
}

// Open opens the recording and its core.
func (r *Recorded) Open(t testing.TB) (*record.Recording, *image.Process) {
	t.Helper()
	rec, err := record.Open(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	path, err := rec.Core()
	if err != nil {
		t.Fatal(err)
	}
	core, err := image.OpenCore(path, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { core.Close() })
	return rec, core
}

// runLimit is more than any test's program needs, on a machine under load.
const runLimit = 3 * time.Minute

// Record builds and records the program, and checks that it ended as its comments say.
func (p *Program) Record(t testing.TB) *Recorded {
	t.Helper()
	return RecordProgram(t, p.Build(t), p.Args, p.Stdin, p.Ends)
}

// Library is the path of the library that records. The test is skipped if it cannot be built.
func Library(t testing.TB) string {
	t.Helper()
	library, err := agent.RecordLibrary(t.Context())
	var unsupported *agent.UnsupportedError
	if errors.As(err, &unsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return library
}

// RecordTurns is Record, with threads that take turns by a seed.
func (p *Program) RecordTurns(t testing.TB, seed uint64) *Recorded {
	t.Helper()
	return recordProgram(t, p.Build(t), p.Args, p.Stdin, p.Ends, races{turns: &record.Turns{Seed: seed}})
}

// RecordAtomics is Record, with the order of atomic instructions.
func (p *Program) RecordAtomics(t testing.TB) *Recorded {
	t.Helper()
	return recordProgram(t, p.Build(t), p.Args, p.Stdin, p.Ends, races{atomics: true})
}

// races is what a recording has of the order of accesses to memory: the values of record's --races.
type races struct {
	turns   *record.Turns
	atomics bool
}

// RecordProgram records any program. ends may be empty.
func RecordProgram(t testing.TB, path string, args []string, stdin, ends string) *Recorded {
	t.Helper()
	return recordProgram(t, path, args, stdin, ends, races{})
}

func recordProgram(t testing.TB, path string, args []string, stdin, ends string, how races) *Recorded {
	t.Helper()
	r, err := run(t, path, args, stdin, Library(t), how)
	var cannot *launch.UnsupportedError
	if errors.As(err, &cannot) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := EndOf(r.Result); ends != "" && got != ends {
		t.Fatalf("%s ended with %s, want %s\n%s", path, got, ends, r.Output)
	}
	if r.Dir == "" {
		t.Fatalf("%s was not recorded: %v", path, r.Warnings)
	}
	return r
}

// run records with the standard streams of this process replaced: the recorder passes them on.
func run(t testing.TB, path string, args []string, stdin, library string, how races) (*Recorded, error) {
	ctx, cancel := context.WithTimeout(t.Context(), runLimit)
	defer cancel()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, []byte(stdin), 0o600); err != nil {
		return nil, err
	}
	input, err := os.Open(in)
	if err != nil {
		return nil, err
	}
	defer input.Close()
	output, err := os.Create(out)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	restore := exchangeStreams(input, output)
	r := &Recorded{}
	r.Result, err = recorder.Run(ctx, recorder.Options{Path: path, Args: append([]string{path}, args...), Environ: agent.RecordEnvironment(os.Environ(), library, nil), Library: library,
		Output: filepath.Join(dir, "recordings"), All: true, Turns: how.turns, Atomics: how.atomics, Warn: func(text string) { r.Warnings = append(r.Warnings, text) }})
	restore()
	if err != nil {
		return nil, err
	}
	r.Dir = r.Result.Dir
	text, err := os.ReadFile(out)
	r.Output = string(text)
	return r, err
}

func exchangeStreams(input, output *os.File) (restore func()) {
	oldIn, oldOut, oldErr := os.Stdin, os.Stdout, os.Stderr
	os.Stdin, os.Stdout, os.Stderr = input, output, output
	return func() { os.Stdin, os.Stdout, os.Stderr = oldIn, oldOut, oldErr }
}

// EndOf is how a run ended, as ENDS says it.
func EndOf(r recorder.Result) string {
	if r.Status.Signaled() {
		return unix.SignalName(r.Status.Signal())
	}
	return fmt.Sprintf("exit %d", r.Status.ExitStatus())
}

// CheckEvents checks that the recording has the events that the program was written for.
func (p *Program) CheckEvents(t testing.TB, dir string) uint64 {
	t.Helper()
	rec, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	counts := map[string]uint64{}
	total := uint64(0)
	for e, err := range rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		counts[e.Kind.String()]++
		total++
	}
	for kind, least := range p.Events {
		if counts[kind] < least {
			t.Errorf("%s: %d events of kind %s, want at least %d", p.Name, counts[kind], kind, least)
		}
	}
	return total
}

// Replay replays a recording to its end and compares.
func Replay(ctx context.Context, dir string) (*replay.Result, error) {
	rec, err := record.Open(dir)
	if err != nil {
		return nil, err
	}
	defer rec.Close()
	return replay.Run(ctx, rec, replay.PlainRequest{Verify: true})
}

// Differences describes the differences of a replay; empty if there are none.
func Differences(r *replay.Result) string {
	c := r.Comparison
	if c == nil {
		return "nothing was compared"
	}
	if c.Identical() {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d ranges of memory with %d bytes, %d registers, %d mappings differ", c.Ranges, c.Bytes, c.Registers, c.Mappings)
	for i := range c.Differences {
		b.WriteString("\n  " + c.Differences[i].String())
	}
	return b.String()
}

func replayInTime(t testing.TB, dir string) (*replay.Result, error) {
	ctx, cancel := context.WithTimeout(t.Context(), runLimit)
	defer cancel()
	return Replay(ctx, dir)
}

// Reaches replays a recording several times. Each replay must reach the recorded end. Differences
// from the recorded state are logged.
func Reaches(t testing.TB, dir string, times int) {
	t.Helper()
	replays(t, dir, times, func(n int, r *replay.Result) {
		t.Helper()
		if text := Differences(r); text != "" {
			t.Logf("replay %d of %d: %s", n, times, text)
		}
	})
}

// Identical replays a recording the given number of times, and fails the test unless each replay
// reached an end that is the same byte by byte.
func Identical(t testing.TB, dir string, times int) {
	t.Helper()
	replays(t, dir, times, func(n int, r *replay.Result) {
		t.Helper()
		if text := Differences(r); text != "" {
			t.Fatalf("replay %d of %d: %s", n, times, text)
		}
		if r.Comparison.Threads == 0 || r.Comparison.Compared == 0 {
			t.Fatalf("replay %d of %d compared %d threads and %d bytes", n, times, r.Comparison.Threads, r.Comparison.Compared)
		}
	})
}

// replays replays a recording to its recorded end the given number of times, and calls look for
// each replay, numbered from 1.
func replays(t testing.TB, dir string, times int, look func(n int, r *replay.Result)) {
	t.Helper()
	for i := range times {
		r, err := replayInTime(t, dir)
		if err != nil {
			t.Fatalf("replay %d of %d: %v", i+1, times, err)
		}
		look(i+1, r)
	}
}
