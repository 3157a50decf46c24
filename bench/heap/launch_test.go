package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// root is where the programs' sources are found from.
func root(t *testing.T) *launcher {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip(err)
	}
	t.Chdir("../..")
	l, err := newLauncher(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLauncherMeasuresTheProgramAlone(t *testing.T) {
	l := root(t)
	idle, err := l.launch(job{argv: []string{"sh", "-c", "exit 0"}}, allocator{})
	if err != nil {
		t.Fatal(err)
	}
	busy, err := l.launch(job{argv: []string{"sh", "-c", "x=$VARIABLE; while [ ${#x} -lt 30000000 ]; do x=$x$x; done; echo ${#x}"},
		env: []string{"VARIABLE=ab"}}, allocator{})
	if err != nil {
		t.Fatal(err)
	}
	const mib = 1 << 20
	if idle.peak < mib/2 || idle.peak > 6*mib || busy.peak < 30*mib {
		t.Errorf("peaks of %v and %v bytes", idle.peak, busy.peak)
	}
	if busy.cpu <= idle.cpu || busy.wall < 0.001 {
		t.Errorf("costs %+v and %+v", idle, busy)
	}
	if idle.output == busy.output {
		t.Error("different output has the same digest")
	}
}

func TestLauncherReportsFailures(t *testing.T) {
	l := root(t)
	for _, c := range []struct {
		argv []string
		a    allocator
		want string
	}{
		{[]string{"sh", "-c", "echo why >&2; exit 3"}, allocator{}, "exit status 3: why"},
		{[]string{"sh", "-c", "kill -SEGV $$"}, allocator{}, "exit status 139"},
		{[]string{"/nonexistent"}, allocator{}, "exit status 127"},
		{[]string{"true"}, allocator{preload: "/nonexistent.so"}, "not loaded"},
	} {
		if _, err := l.launch(job{argv: c.argv}, c.a); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, not %q", c.argv, err, c.want)
		}
	}
}

// A checksum that depended on addresses or on the order of threads would show
// as a failure of some allocator.
func TestOwnProgramsPrintTheSameAlways(t *testing.T) {
	l := root(t)
	dir := t.TempDir()
	for _, p := range own(dir, 100) {
		first, err := (&result{program: p}).measure(l, allocator{name: glibc}, 1)
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		second, err := (&result{program: p}).measure(l, allocator{name: "perturbed", wrapper: []string{"env", "MALLOC_PERTURB_=77", "MALLOC_ARENA_MAX=1"}}, 1)
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		if first.output != second.output {
			t.Errorf("%s prints something else the second time", p)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != len(sources) {
		t.Errorf("%d programs for %d sources: %v", len(files), len(sources), err)
	}
}

func TestComparisonSeesOtherOutput(t *testing.T) {
	l := root(t)
	p := program{name: "p", job: func(a allocator, _ int) (job, error) {
		return job{argv: []string{"echo", a.build}}, nil
	}}
	r, err := compare(l, p, []allocator{{name: glibc, share: 100}, {name: "same", share: 100}, {name: "other", build: "x", share: 100}}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if r.failed["same"] != nil || r.failed["other"] == nil || len(r.pairs["same"]) != 2 || len(r.base) != 2 {
		t.Errorf("got %+v", r)
	}
}
