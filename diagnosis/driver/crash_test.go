package driver_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/crashtest"
	"diagnose/replay/recorder"
)

var update = flag.Bool("update", false, "write the golden files again")

func TestMain(m *testing.M) { recorder.Init(); crashtest.Main(m) }

func crash(t *testing.T, req driver.Request) *evidence.Case {
	t.Helper()
	c, err := driver.Crash(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	for _, l := range c.Limits {
		if strings.Contains(l.Text, "failed inside") {
			t.Errorf("a stage panicked: %s", l.Text)
		}
	}
	return c
}

// TestFixtures checks the whole report against the expectation next to each bug.
func TestFixtures(t *testing.T) {
	sentences := &golden{lines: map[string]string{}, kept: map[string]bool{}}
	t.Run("group", func(t *testing.T) {
		for _, f := range crashtest.Fixtures(t) {
			for _, v := range f.Variants() {
				t.Run(f.Name+"/"+v.Name, func(t *testing.T) {
					t.Parallel()
					x := f.Crash(t, v)
					c := crash(t, driver.Request{Core: x.Core})
					checkWant(t, f.Want, c)
					checkLocks(t, f.Hang, c)
				})
			}
			if f.Hang || f.Name == "stack_overflow_mutual" {
				continue // the start of its cycle differs from run to run
			}
			t.Run(f.Name+"/sentence", func(t *testing.T) {
				t.Parallel()
				defer func() {
					if t.Skipped() {
						sentences.keep(f.Name)
					}
				}()
				x := f.Crash(t, f.AllVariants()[0])
				c := crash(t, driver.Request{Core: x.Core})
				sentences.addLine(f.Name, c.Failure.Sentence)
			})
		}
	})
	if strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return // only some of the fixtures were asked for
	}
	sentences.compare(t, "testdata/sentences.txt")
}

func checkWant(t *testing.T, want crashtest.Want, c *evidence.Case) {
	t.Helper()
	f := &c.Failure
	if f.Kind != want.Kind {
		t.Errorf("kind %s, want %s: %s", f.Kind, want.Kind, f.Sentence)
	}
	// A compiler may merge a read and a write into one instruction.
	if want.Access != "" && (f.Fault == nil || f.Fault.Access != want.Access && f.Fault.Access != evidence.ReadWrite) {
		t.Errorf("fault %+v, want access %s", f.Fault, want.Access)
	}
	if want.Nowhere() {
		if f.Site != nil && !image.LibraryCode(f.Site) {
			t.Errorf("site %+v, want none in the program", f.Site)
		}
		return
	}
	if f.Site == nil || !want.At(f.Site.Line) {
		t.Errorf("site %+v, want lines %d to %d", f.Site, want.Line, want.LastLine)
	}
}

// checkLocks: a program that hangs has a proven cycle, any other has none.
func checkLocks(t *testing.T, hang bool, c *evidence.Case) {
	t.Helper()
	found := false
	for _, f := range c.Findings {
		if f.Kind != evidence.FindingDeadlock && f.Kind != evidence.FindingSelfLock {
			continue
		}
		found = true
		if f.Proof != evidence.FromCore {
			t.Errorf("%s is only %s", f.Summary, f.Proof)
		}
	}
	if found != hang {
		t.Errorf("findings %+v, hung is %v", c.Findings, hang)
	}
}

// TestDeadlockedThreadsApart: the threads of a deadlock share the pcs of their stacks, but each has
// its own arguments and waits for another lock.
func TestDeadlockedThreadsApart(t *testing.T) {
	x := crashtest.Named(t, "deadlock_cycle").Crash(t, crashtest.Variant{Name: "O0", Flags: []string{"-O0"}})
	locks, arguments := map[string]bool{}, map[string]bool{}
	for _, g := range crash(t, driver.Request{Core: x.Core}).Stacks {
		if !strings.Contains(g.Waiting, "mutex") {
			continue
		}
		if len(g.Threads) != 1 {
			t.Errorf("%d threads are folded that wait for %s", len(g.Threads), g.Waiting)
		}
		locks[g.Waiting] = true
		for _, f := range g.Stack.Frames {
			if f.Site.Function == "philosopher" && len(f.Args) == 1 {
				arguments[f.Args[0].Value.Text] = true
			}
		}
	}
	if len(locks) != 3 || len(arguments) != 3 {
		t.Errorf("locks %v, arguments %v: want three of each", locks, arguments)
	}
}

// TestWaitingThreadsFolded: many threads that wait without a deadlock are reported as one group.
func TestWaitingThreadsFolded(t *testing.T) {
	f := crashtest.Named(t, "threads_200")
	c := crash(t, driver.Request{Core: f.Crash(t, f.Variants()[0]).Core})
	most := 0
	for _, g := range c.Stacks {
		most = max(most, len(g.Threads))
	}
	if most < 100 {
		t.Errorf("the largest of %d groups has %d threads", len(c.Stacks), most)
	}
}

func TestOtherThread(t *testing.T) {
	x := crashtest.Named(t, "threads_work").Crash(t, crashtest.Variant{Name: "O0", Flags: []string{"-O0"}})
	failed := crash(t, driver.Request{Core: x.Core})
	for _, g := range failed.Stacks {
		if g.Failing {
			continue
		}
		c := crash(t, driver.Request{Core: x.Core, Thread: g.Threads[0].TID})
		if c.Failure.Kind != evidence.NoFailure || !strings.Contains(c.Failure.Sentence, "when thread 3 failed") {
			t.Errorf("thread %d: %s: %s", g.Threads[0].TID, c.Failure.Kind, c.Failure.Sentence)
		}
		if c.Stacks[0].Failing || c.Stacks[0].Threads[0].TID != g.Threads[0].TID {
			t.Errorf("the first stack is that of %+v", c.Stacks[0].Threads)
		}
		return
	}
	t.Fatal("the program has one thread")
}

// golden collects a line for each name and compares them with a file. The file's lines for the
// names in kept remain: their programs could not be compiled here.
type golden struct {
	mu    sync.Mutex
	lines map[string]string
	kept  map[string]bool
}

// volatile are the parts of a sentence that differ from run to run.
var volatile = regexp.MustCompile(`0x[0-9a-f]{5,16}|process [0-9]+|[0-9]+ times|/\S*mapped-\S+`)

func (g *golden) addLine(name, line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lines[name] = volatile.ReplaceAllString(line, "...")
}

func (g *golden) keep(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.kept[name] = true
}

func (g *golden) compare(t *testing.T, path string) {
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(string(want)) {
		if name, _, _ := strings.Cut(line, ":"); g.kept[name] {
			list = append(list, line)
		}
	}
	for name, line := range g.lines {
		list = append(list, fmt.Sprintf("%s: %s\n", name, line))
	}
	slices.Sort(list)
	got := strings.Join(list, "")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-golden +got (write again with -update):\n%s", diff)
	}
}
