package recorder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/replay/record"
	"diagnose/replay/recorder/limits"
	"diagnose/replay/recorder/sites"
)

func testOrder(t *testing.T, args ...string) *order {
	t.Helper()
	library := filepath.Join(t.TempDir(), "lib.so")
	if err := os.WriteFile(library, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return &order{Path: "/bin/prog", Library: record.Text(library), Output: record.Text(filepath.Join(t.TempDir(), "out")), Args: record.Texts(args)}
}

func TestRunName(t *testing.T) {
	for _, x := range []struct{ arg, want string }{
		{"/usr/bin/ls", "ls"}, {"-bash", "bash"}, {"a b\x1b[2J", "a_b__2J"}, {"..", "program"}, {"g++-12", "g++-12"},
		{strings.Repeat("x", 300), strings.Repeat("x", 64)}, {"", "prog"},
	} {
		if got := runName([]string{x.arg}, "/bin/prog"); got != x.want {
			t.Errorf("%q is called %q, want %q", x.arg, got, x.want)
		}
	}
}

// Two runs at a time, numbers that are taken, and names that look alike.
func TestRunDirectories(t *testing.T) {
	o := testOrder(t, "prog")
	for _, name := range []string{"prog-0007-passed", ".prog-0012-running", "prog-x-0099-passed", "prog-0050", "other-0100-passed"} {
		if err := os.MkdirAll(filepath.Join(string(o.Output), name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	first, err := newRun(o)
	if err != nil {
		t.Fatal(err)
	}
	second, err := newRun(o)
	if err != nil {
		t.Fatal(err)
	}
	if first.number != 13 || second.number != 14 {
		t.Errorf("numbers %d, %d, want 13, 14", first.number, second.number)
	}
	// The name is taken. The recording gets another number, and nothing is lost.
	taken := filepath.Join(string(o.Output), "prog-0013-SIGABRT")
	if err := os.Mkdir(taken, 0o700); err != nil {
		t.Fatal(err)
	}
	first.mainOutcome = &record.Outcome{Kind: record.OutcomeSignal, Signal: int(unix.SIGABRT)}
	if err := first.settle(); err != nil || filepath.Base(first.dir) != "prog-0015-SIGABRT" {
		t.Errorf("%s, %v", first.dir, err)
	}
	if _, err := os.Stat(taken); err != nil {
		t.Error(err)
	}
	if err := second.settle(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(second.dir); !os.IsNotExist(err) {
		t.Errorf("a run that passed left %s: %v", second.dir, err)
	}
}

func TestRunFailure(t *testing.T) {
	signal := func(s unix.Signal) *record.Outcome {
		return &record.Outcome{Kind: record.OutcomeSignal, Signal: int(s)}
	}
	for _, x := range []struct {
		name        string
		child, main *record.Outcome
		want        string
	}{
		{"passed", nil, &record.Outcome{Kind: record.OutcomePassed}, ""},
		{"status", nil, &record.Outcome{Kind: record.OutcomeExit, Status: 3}, "exit-3"},
		{"signal", nil, signal(unix.SIGTERM), "SIGTERM"},
		{"real-time signal", nil, signal(40), "signal-40"},
		{"heap", nil, &record.Outcome{Kind: record.OutcomePassed, Evidence: "1 corruption"}, "heap"},
		{"child's crash", signal(unix.SIGBUS), &record.Outcome{Kind: record.OutcomePassed}, "child-SIGBUS"},
		{"child's status", &record.Outcome{Kind: record.OutcomeExit, Status: 1}, &record.Outcome{Kind: record.OutcomePassed}, ""},
		{"killed child", signal(unix.SIGTERM), &record.Outcome{Kind: record.OutcomePassed}, ""},
		{"child's heap", &record.Outcome{Kind: record.OutcomePassed, Evidence: "1"}, &record.Outcome{Kind: record.OutcomePassed}, "child-heap"},
		{"child's crash and a status", signal(unix.SIGBUS), &record.Outcome{Kind: record.OutcomeExit, Status: 1}, "child-SIGBUS"},
		{"child's status and a status", &record.Outcome{Kind: record.OutcomeExit, Status: 2}, &record.Outcome{Kind: record.OutcomeExit, Status: 1}, "exit-1"},
		{"both crashed", signal(unix.SIGBUS), signal(unix.SIGSEGV), "SIGSEGV"},
		{"child's crash, then interrupted", signal(unix.SIGBUS), signal(unix.SIGINT), "child-SIGBUS"},
		{"cut child", &record.Outcome{Kind: record.OutcomeCut, Cut: signal(unix.SIGBUS)}, &record.Outcome{Kind: record.OutcomePassed}, "child-SIGBUS"},
	} {
		main := &recording{manifest: record.Manifest{PID: 1}}
		r := &run{main: 1, recordings: []*recording{main}, mainOutcome: x.main}
		if x.child != nil {
			r.recordings = append(r.recordings, &recording{parent: main, dir: "children/2-1", manifest: record.Manifest{PID: 2, Outcome: *x.child}})
		}
		name, culprit := "", ""
		if f := r.failure(); f != nil {
			name, culprit = f.name, f.culprit
		}
		if name != x.want {
			t.Errorf("%s: called %q, want %q", x.name, name, x.want)
		}
		if child := strings.HasPrefix(x.want, "child-"); child != (culprit == "children/2-1") {
			t.Errorf("%s: the recording to see it in is %q", x.name, culprit)
		}
	}
}

func TestReadMappings(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	maps, err := sites.Mappings(os.Getpid())
	files := 0
	for _, m := range maps {
		if m.File != nil && m.File.Inode != 0 && string(m.Path) == self {
			files++
		}
	}
	if err != nil || len(maps) < 5 || files == 0 || len(maps[0].Permissions) != 4 {
		t.Errorf("%d mappings, %d of the program, %v", len(maps), files, err)
	}
}

// Only the signal that the kernel kills with indicates a lack of memory.
func TestKilledMeanwhile(t *testing.T) {
	r := &run{memoryKills: limits.MemoryKills()}
	for _, o := range []record.Outcome{{Kind: record.OutcomeSignal, Signal: int(unix.SIGKILL)}, {Kind: record.OutcomeExit, Status: 137}, {Kind: record.OutcomeSignal, Signal: int(unix.SIGSEGV)}} {
		before := limits.MemoryKills() - r.memoryKills // of other processes
		if n := r.killedMeanwhile(&o); n > before && o.Signal != int(unix.SIGKILL) {
			t.Errorf("%+v: %d", o, n)
		}
	}
}
