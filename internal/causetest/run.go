package causetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
	"diagnose/replay/record"
	"diagnose/replay/recorder"
)

// attempts bounds how often a run with the wrong result is repeated: the orders are forced by
// delays, which a busy machine may exceed.
const attempts = 15

// ending is how a run ends, and what it said by then.
type ending struct{ how, says string }

// build is a program that was compiled, and the recordings that were made of
// it, for as long as the process of the test lives.
type build struct {
	exe, dir   string
	recordings map[runKind][]string
	said       map[string]string // by the recording's directory
}

var kept = struct {
	sync.Mutex
	dir    string
	builds map[string]*build
}{builds: map[string]*build{}}

// keepVariable, if set, lets programs and recordings stay when a test fails.
const keepVariable = "DIAGNOSE_KEEP"

// Main runs the tests of a package and removes what they built and recorded.
// Call it from TestMain.
func Main(m *testing.M) {
	recorder.Init()
	code := m.Run()
	switch {
	case kept.dir == "":
	case code != 0 && os.Getenv(keepVariable) != "":
		fmt.Fprintln(os.Stderr, "kept:", kept.dir)
	default:
		os.RemoveAll(kept.dir)
	}
	os.Exit(code)
}

// Failing is a recording of a run that failed as the case says. Like all recordings made here it is
// closed when the test ends. Later calls may return it again.
func (c *Case) Failing(t testing.TB) *record.Recording {
	t.Helper()
	return c.recordings(t, failing, 1)[0]
}

// AllFailing are n of them.
func (c *Case) AllFailing(t testing.TB, n int) []*record.Recording {
	t.Helper()
	return c.recordings(t, failing, n)
}

// Passing are n recordings of runs that ended with status 0.
func (c *Case) Passing(t testing.TB, n int) []*record.Recording {
	t.Helper()
	return c.recordings(t, passing, n)
}

// Twins are n recordings of the program without the bug: run as the one that fails, then
// as the one that passes, and so on. None may fail.
func (c *Case) Twins(t testing.TB, n int) []*record.Recording {
	t.Helper()
	b := c.build(t, true)
	const twins runKind = "twin"
	for i := len(b.recordings[twins]); i < n; i++ {
		kind := []runKind{failing, passing}[i%2]
		dir, ended := c.record(t, b, kind, i/2)
		if ended.how != passes {
			t.Fatalf("the fixed twin of %s, run to %s, ended with %s: %s", c, kind, ended.how, ended.says)
		}
		b.recordings[twins] = append(b.recordings[twins], dir)
	}
	var list []*record.Recording
	for _, dir := range b.recordings[twins][:n] {
		list = append(list, open(t, dir))
	}
	return list
}

// passes is the ending of a run that did not fail.
const passes = "exit 0"

func (c *Case) recordings(t testing.TB, kind runKind, n int) []*record.Recording {
	t.Helper()
	crashtest.TracesAccesses(t)
	if c.Search != "" {
		t.Skip(c.Search)
	}
	b := c.build(t, false)
	want := ending{how: passes}
	if kind == failing {
		want = c.ends
	}
	var last ending
	tries := 0
	for ; len(b.recordings[kind]) < n; tries++ {
		if tries == attempts*n {
			t.Fatalf("%s: %d runs with %q, of which %d ended with %s; the last one ended with %s: %s", c, tries, c.runs[kind], len(b.recordings[kind]), want.how, last.how, last.says)
		}
		var dir string
		dir, last = c.record(t, b, kind, len(b.recordings[kind]))
		if last.how == want.how && strings.Contains(last.says, want.says) {
			b.recordings[kind] = append(b.recordings[kind], dir)
		} else if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d runs for %d recordings that %s", tries, len(b.recordings[kind]), kind)
	var list []*record.Recording
	for _, dir := range b.recordings[kind][:n] {
		list = append(list, open(t, dir))
	}
	return list
}

func open(t testing.TB, dir string) *record.Recording {
	t.Helper()
	rec, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	return rec
}

// record makes one recording, with the run's arguments of that number.
func (c *Case) record(t testing.TB, b *build, kind runKind, number int) (dir string, ended ending) {
	t.Helper()
	r := recordtest.RecordProgram(t, b.exe, c.arguments(t, b, kind, number), lines(c.inputs[kind]), "")
	dir, err := os.MkdirTemp(b.dir, string(kind)+"-")
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, filepath.Base(r.Dir))
	if err := os.Rename(r.Dir, dir); err != nil {
		t.Fatal(err)
	}
	how := fmt.Sprintf("exit %d", r.Result.Status.ExitStatus())
	if r.Result.Status.Signaled() {
		how = unix.SignalName(r.Result.Status.Signal())
	}
	said := r.Output + r.Result.Outcome.Evidence + "\n"
	if a := r.Result.Outcome.FaultAddr; a != nil {
		said += fmt.Sprintf("fault at %#x\n", uint64(*a))
	} else if how == "SIGSEGV" {
		said += "fault at no address\n"
	}
	b.said[dir] = said
	return dir, ending{how: how, says: said}
}

// arguments writes the run's file, and returns its arguments.
func (c *Case) arguments(t testing.TB, b *build, kind runKind, number int) []string {
	t.Helper()
	file := filepath.Join(b.dir, "input-"+string(kind))
	if err := os.WriteFile(file, []byte(lines(c.files[kind])), 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.Fields(strings.ReplaceAll(c.runs[kind][number%len(c.runs[kind])], "{file}", file))
}

func lines(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return strings.Join(list, "\n") + "\n"
}

// build compiles the case, or returns an earlier build.
func (c *Case) build(t testing.TB, fixed bool) *build {
	t.Helper()
	kept.Lock()
	defer kept.Unlock()
	key := fmt.Sprint(c.Source, c.Level, c.Compiler, fixed)
	if b := kept.builds[key]; b != nil {
		return b
	}
	if kept.dir == "" {
		dir, err := os.MkdirTemp("", "causetest-")
		if err != nil {
			t.Fatal(err)
		}
		kept.dir = dir
	}
	dir, err := os.MkdirTemp(kept.dir, c.Name+"-")
	if err != nil {
		t.Fatal(err)
	}
	b := &build{exe: filepath.Join(dir, c.Name), dir: dir, recordings: map[runKind][]string{}, said: map[string]string{}}
	cc, args := c.compiler(b.exe, fixed)
	if _, err := exec.LookPath(cc); err != nil {
		t.Skip(err)
	}
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", c.Source, err, out)
	}
	kept.builds[key] = b
	return b
}

// compilers are the names of C's and C++'s.
var compilers = map[string]map[string]string{
	"gcc":   {".c": "gcc", ".cc": "g++"},
	"clang": {".c": "clang", ".cc": "clang++"},
}

// compiler says how the case is compiled. The programs have bugs that the compiler must not warn
// about.
func (c *Case) compiler(exe string, fixed bool) (string, []string) {
	if filepath.Ext(c.Source) == ".rs" {
		args := []string{"-g", "-A", "warnings", "-C", "opt-level=" + c.Level[1:], "-o", exe, c.Source}
		if fixed {
			args = append(args, "--cfg", "fixed")
		}
		return "rustc", append(args, c.flags...)
	}
	args := []string{"-g", "-" + c.Level, "-w", "-pipe", "-pthread", "-o", exe, c.Source}
	if fixed {
		args = append(args, "-DFIXED")
	}
	return compilers[c.Compiler][filepath.Ext(c.Source)], append(args, c.flags...)
}
