package severity_test

import (
	"cmp"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// agreementWanted is the share of cores, in percent, of which the estimate has to be casr's. Every other
// class has to have a known reason.
const agreementWanted = 95

// tally counts the cores on which both judgements are the same.
type tally struct {
	cores, classes int
	estimates      [readings]int
	// deviations counts the reasons of different classes.
	deviations map[string]int
}

// add judges one core with casr's rules and with ours. Where casr refuses the signal there is
// nothing to compare, and we have to be silent.
func (y *tally) add(t *testing.T, name, exe, core string) {
	t.Helper()
	gdb, err := askGDB(exe, core)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	c, err := driver.Crash(context.Background(), driver.Request{Core: core, Exe: exe})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	var ours evidence.SeverityClass
	if c.Severity != nil {
		ours = c.Severity.AtFailure
	}
	theirs, err := gdb.class(byDescription)
	if err != nil {
		if ours != "" {
			t.Errorf("%s: signal %d: %v, ours %s", name, gdb.signal, err, ours)
		}
		return
	}
	y.cores++
	for how := range readings {
		if class, _ := gdb.class(how); casrEstimate(class) == string(ours.Estimate()) {
			y.estimates[how]++
		}
	}
	if theirs == string(ours) {
		y.classes++
		return
	}
	why := gdb.deviation(ours, theirs)
	y.count(why, 1)
	instruction := ""
	if i := c.Failure.Instruction; i != nil {
		instruction = i.Text
	}
	say := t.Logf
	if why == "" {
		say = t.Errorf
	}
	say("%s: casr %s %s, ours %s %s: %s (%s, signal %d, %s)", name, theirs, casrEstimate(theirs), ours, ours.Estimate(), cmp.Or(why, "unexplained"), c.Failure.Kind, gdb.signal, instruction)
}

func (y *tally) count(why string, n int) {
	if y.deviations == nil {
		y.deviations = map[string]int{}
	}
	y.deviations[why] += n
}

// sum adds the counts of another tally.
func (y *tally) sum(other *tally) {
	y.cores, y.classes = y.cores+other.cores, y.classes+other.classes
	for how := range readings {
		y.estimates[how] += other.estimates[how]
	}
	for why, n := range other.deviations {
		y.count(why, n)
	}
}

func (y *tally) share(n int) float64 { return 100 * float64(n) / float64(max(1, y.cores)) }

func (y *tally) print(t *testing.T, what string) {
	t.Helper()
	t.Logf("%s: %d cores: estimates agree on %d (%.1f %%; with the names of free alone %.1f %%; with cfree alone %.1f %%), classes on %d (%.1f %%)", what, y.cores,
		y.estimates[byDescription], y.share(y.estimates[byDescription]), y.share(y.estimates[byName]), y.share(y.estimates[byLetter]), y.classes, y.share(y.classes))
	for _, why := range slices.Sorted(maps.Keys(y.deviations)) {
		t.Logf("%s: %d: %s", what, y.deviations[why], why)
	}
}

func needCasrsTools(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"gdb", "cstool"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	crashtest.NeedKernelCores(t)
}

// TestAgreesWithCasr compares the class at the failure with that of casr's rules, which casr_test.go
// has, on cores of the fixtures and of Debian's programs. DIAGNOSE_MATRIX=full takes them all.
func TestAgreesWithCasr(t *testing.T) {
	needCasrsTools(t)
	var all tally
	for _, set := range []struct {
		name string
		add  func(*testing.T, *tally)
	}{{"fixtures", addFixtures}, {"heap", addHeap}, {"cases", addCases}, {"debian", addDebian}} {
		t.Run(set.name, func(t *testing.T) {
			var y tally
			set.add(t, &y)
			y.print(t, set.name)
			all.sum(&y)
		})
	}
	all.print(t, "all")
	if crashtest.FullMatrix() && all.cores < 100 {
		t.Errorf("only %d cores were compared", all.cores)
	}
	if share := all.share(all.estimates[byDescription]); crashtest.FullMatrix() && share < agreementWanted {
		t.Errorf("the estimates agree on %.1f %% of the cores, want %.0f %%", share, float64(agreementWanted))
	}
}

// few keeps the quick run short.
func few[T any](list []T, n int) []T {
	if crashtest.FullMatrix() || len(list) <= n {
		return list
	}
	return list[:n]
}

func addFixtures(t *testing.T, y *tally) {
	for _, f := range few(crashtest.Fixtures(t), 4) {
		if f.Hang {
			continue
		}
		for i, v := range f.AllVariants() {
			if i == 1 || i == 5 || len(f.AllVariants()) <= 3 && i == 0 {
				exe := f.Build(t, crashtest.BuildOptions{Variant: v})
				y.run(t, f.Name+"/"+v.Name, exe, f.Arguments(exe)...)
			}
		}
	}
}

// addHeap runs the programs that misuse the heap without the agent; those that end well are left out.
func addHeap(t *testing.T, y *tally) {
	for _, f := range few(crashtest.HeapFixtures(t), 2) {
		v := f.AllVariants()[0]
		exe := f.Build(t, crashtest.BuildOptions{Variant: v})
		y.run(t, f.Name+"/"+v.Name, exe, f.Arguments(exe)...)
	}
}

// addCases compiles the programs of internal/testdata/cases that take no input.
func addCases(t *testing.T, y *tally) {
	files, err := filepath.Glob("../../internal/testdata/cases/*/*.c")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases:", err)
	}
	for _, file := range few(files, 2) {
		for _, compiler := range []string{"gcc", "clang"} {
			exe := filepath.Join(t.TempDir(), "case")
			level := map[string]string{"gcc": "-O1", "clang": "-O2"}[compiler]
			if err := exec.Command(compiler, "-g", level, "-w", file, "-o", exe, "-lpthread", "-lm").Run(); err != nil {
				continue
			}
			y.run(t, filepath.Base(file)+"/"+compiler, exe)
		}
	}
}

// addDebian spoils an allocation of programs that Debian built, with the library of testdata/fault.c.
func addDebian(t *testing.T, y *tally) {
	lib := filepath.Join(t.TempDir(), "fault.so")
	if out, err := exec.Command("gcc", "-O1", "-shared", "-fPIC", "-fno-stack-protector", "testdata/fault.c", "-o", lib, "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	here, err := filepath.Abs("agreement_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range few([][]string{
		{"sort", here}, {"sed", "-n", "p", here}, {"grep", "func", here}, {"mawk", "{print}", here}, {"perl", "-e", "print 1"},
		{"tar", "cf", "-", here}, {"diff", here, "testdata/fault.c"}, {"git", "--version"}, {"make", "--version"}, {"find", "."}, {"xz", "-kc", here},
		{"readelf", "-h", "/bin/true"}, {"ls", "-l"}, {"gzip", "-c", here}, {"bash", "-c", "echo x"}, {"file", "/bin/true"}, {"cp", here, "/dev/null"},
	}, 1) {
		exe, err := exec.LookPath(program[0])
		if err != nil {
			continue
		}
		if exe, err = filepath.EvalSymlinks(exe); err != nil {
			continue
		}
		for _, how := range []string{"return:0", "return:18", "return:4141414141414141", "return:123456789000", "fill", "over", "free", "stack", "data"} {
			for _, at := range few([]string{"2", "15"}, 1) {
				env := []string{"LD_PRELOAD=" + lib, "FAULT_HOW=" + how, "FAULT_AT=" + at}
				y.runIn(t, program[0]+"/"+how+"/"+at, env, exe, program[1:]...)
			}
		}
	}
}

func (y *tally) run(t *testing.T, name, exe string, args ...string) {
	t.Helper()
	y.runIn(t, name, nil, exe, args...)
}

// runIn runs a program and judges its core; a run that leaves none is left out.
func (y *tally) runIn(t *testing.T, name string, env []string, exe string, args ...string) {
	t.Helper()
	dir := t.TempDir()
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// The shell raises the limit, and has no preloaded library itself.
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", `ulimit -c unlimited; exec env "$@"`, "sh"}, append(append(env, exe), args...)...)...)
	cmd.Dir = dir
	cmd.WaitDelay = time.Second
	_ = cmd.Run() // how it ends is seen from the core
	cores, err := filepath.Glob(filepath.Join(dir, "core*"))
	if err != nil || len(cores) == 0 {
		return
	}
	y.add(t, name, exe, cores[0])
}
