package driver_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/agent"
	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// underAgent is the environment of a run under the agent and, after it, other preloaded libraries.
func underAgent(t *testing.T, options string, others ...string) []string {
	t.Helper()
	library, err := agent.Library(context.Background())
	var unsupported *agent.UnsupportedError
	if errors.As(err, &unsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	preload := strings.Join(append([]string{library}, others...), ":")
	// If each run had a secret of its own, a byte that a program writes would sometimes equal the
	// guard's, and the damage would be reported as shorter.
	if !strings.Contains(options, "canary=") {
		options = strings.TrimSuffix("canary=a7d3c1f5e9b38b95:"+options, ":")
	}
	return []string{"LD_PRELOAD=" + preload, agent.OptionsVariable + "=" + options}
}

// TestHeapFixtures checks the report of each misuse of the heap, under the agent, against the
// expectation next to the bug.
func TestHeapFixtures(t *testing.T) {
	for _, f := range crashtest.HeapFixtures(t) {
		for _, v := range f.Variants() {
			t.Run(f.Name+"/"+v.Name, func(t *testing.T) {
				t.Parallel()
				env := underAgent(t, f.Options)
				if f.Quiet {
					checkQuiet(t, f, crashtest.BuildOptions{Variant: v})
					return
				}
				c := crash(t, driver.Request{Core: f.CrashUnder(t, v, env).Core})
				checkWant(t, f.Want, c)
				checkFindings(t, f.Heap, c.Findings)
			})
		}
	}
}

// TestHeapTwins: the programs without their bugs work as before, the agent reports nothing, and a
// core of their end has no finding.
func TestHeapTwins(t *testing.T) {
	for _, f := range crashtest.HeapFixtures(t) {
		for i, v := range f.Variants() {
			t.Run(f.Name+"/"+v.Name, func(t *testing.T) {
				t.Parallel()
				o := crashtest.BuildOptions{Variant: v, Fixed: true}
				checkQuiet(t, f, o)
				if i == 0 {
					checkClean(t, f.EndCore(t, o, underAgent(t, f.Options, crashtest.EndLibrary(t))).Core)
				}
			})
		}
	}
}

// TestHeapGoesOn: if a program continues after an error, a core of its end has the finding as it
// was made.
func TestHeapGoesOn(t *testing.T) {
	for _, name := range []string{"cxx_mismatch_array_delete", "double_free_direct", "free_middle", "free_stack",
		"over_loop", "over_realloc_grown", "realloc_freed", "under_first", "uaf_write_budget"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := crashtest.HeapNamed(t, name)
			o := crashtest.BuildOptions{Variant: f.Variants()[0]}
			core := f.EndCore(t, o, underAgent(t, "on_error=continue", crashtest.EndLibrary(t))).Core
			heap, err := driver.Heap(context.Background(), driver.Request{Core: core}, driver.HeapOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if heap.Errors != 1 {
				t.Errorf("%d errors", heap.Errors)
			}
			checkFindings(t, f.Heap, heap.Findings)
		})
	}
}

// TestHeapLog: a program that continues after errors logs them, a line each, and its exit status
// says that there were some.
func TestHeapLog(t *testing.T) {
	f := crashtest.HeapNamed(t, "double_free_direct")
	exit := f.ExitUnder(t, crashtest.BuildOptions{Variant: f.Variants()[0]}, underAgent(t, "on_error=log:exitcode=61"))
	var status *exec.ExitError
	if !errors.As(exit.Err, &status) || status.ExitCode() != 61 {
		t.Errorf("%v", exit.Err)
	}
	if !strings.HasPrefix(exit.Stderr, "diagnose: error=double-free when=free ") || strings.Count(exit.Stderr, "\n") != 1 ||
		!strings.Contains(exit.Stderr, " size=100 ") || strings.Count(exit.Stderr, "/double_free_direct+0x") < 3 {
		t.Errorf("standard error: %s", exit.Stderr)
	}
}

// checkQuiet: a run that the agent serves ends with status 0 and without output.
func checkQuiet(t *testing.T, f *crashtest.Fixture, o crashtest.BuildOptions) {
	t.Helper()
	exit := f.ExitUnder(t, o, underAgent(t, f.Options, crashtest.EndLibrary(t)))
	// A child that ends as usual prints it as well.
	strange := strings.ReplaceAll(exit.Stdout, crashtest.EndServed, "")
	if exit.Err != nil || exit.Stderr != "" || exit.Stdout == "" || strange != "" {
		t.Errorf("%v; standard output %q, standard error %q", exit.Err, exit.Stdout, exit.Stderr)
	}
}

func checkClean(t *testing.T, core string) {
	t.Helper()
	heap, err := driver.Heap(context.Background(), driver.Request{Core: core}, driver.HeapOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if heap.Allocations == 0 || heap.Errors != 0 || heap.Damaged != 0 || len(heap.Findings) != 0 {
		t.Errorf("%d allocations, %d errors, findings %+v", heap.Allocations, heap.Errors, heap.Findings)
	}
	for _, l := range heap.Limits {
		if !strings.HasPrefix(l.Text, "no debug information") {
			t.Errorf("a limit: %s", l.Text)
		}
	}
	c := crash(t, driver.Request{Core: core})
	if c.Failure.Kind != evidence.Abort {
		t.Errorf("%s: %s", c.Failure.Kind, c.Failure.Sentence)
	}
	for _, f := range c.Findings {
		t.Errorf("a finding: %s: %s", f.Kind, f.Summary)
	}
}

// checkFindings matches the expectations with the findings. The only findings that may be left over
// are those that locate a pointer by an object.
func checkFindings(t *testing.T, wants []crashtest.HeapWant, found []evidence.Finding) {
	t.Helper()
	rest := slices.Clone(found)
	for i := range wants {
		best, least := -1, []string(nil)
		for k := range rest {
			d := differences(&wants[i], &rest[k])
			if best < 0 || len(d) < len(least) {
				best, least = k, d
			}
		}
		switch {
		case best >= 0 && len(least) == 0:
			rest = slices.Delete(rest, best, best+1)
		case wants[i].Optional:
		case best >= 0:
			t.Errorf("no such %s; the nearest is %q: %s", wants[i].Kind, rest[best].Summary, strings.Join(least, "; "))
		default:
			t.Errorf("no %s", wants[i].Kind)
		}
	}
	// A stale iterator is a use of freed memory in the container's words.
	stale := func(f *evidence.Finding) bool {
		return f.Kind == evidence.FindingContainer && f.Container.Misuse == evidence.MisuseStale &&
			slices.ContainsFunc(wants, func(w crashtest.HeapWant) bool { return w.Kind == evidence.FindingUseAfterFree })
	}
	for i := range rest {
		if rest[i].Kind != evidence.FindingHeapObject && !stale(&rest[i]) {
			t.Errorf("not expected: %s: %s", rest[i].Kind, rest[i].Summary)
		}
	}
}

// differ collects the differences between a finding and an expectation.
type differ struct{ list []string }

func (d *differ) want(ok bool, format string, args ...any) {
	if !ok {
		d.list = append(d.list, fmt.Sprintf(format, args...))
	}
}

func differences(w *crashtest.HeapWant, f *evidence.Finding) []string {
	d := &differ{}
	if w.Kind != f.Kind { // so that the nearest is one of this kind
		return []string{"kind " + string(f.Kind), "and", "all", "else", "with", "it", "too"}
	}
	d.want(w.Proof == f.Proof, "proof level %q", f.Proof)
	d.want(strings.Contains(f.Summary, w.Says), "it does not say %q", w.Says)
	d.want(w.Addr == nil || *w.Addr == f.Addr, "address %v", f.Addr)
	d.damage(w.Damage, f.Damage)
	d.call("call", w.Call, f.Call)
	if w.Object == nil || f.Object == nil {
		d.want(w.Object == nil && f.Object == nil, "object %+v", f.Object)
		return d.list
	}
	d.object(w.Object, f.Object)
	d.want(w.At == nil || *w.At == int64(f.Addr-f.Object.Addr), "at %d", f.Addr-f.Object.Addr)
	if w.Object.Beyond != nil {
		d.want(f.Beyond != nil && f.Beyond.Size == *w.Object.Beyond, "beyond %+v", f.Beyond)
	}
	return d.list
}

func (d *differ) object(w *crashtest.WantObject, o *evidence.HeapObject) {
	d.want(w.Size == o.Size, "object of %d bytes", o.Size)
	d.want(w.API == o.API, "from %s", o.API)
	d.want((w.Free == nil) == (o.State == evidence.HeapLive), "object %s", o.State)
	d.want(o.Slot <= o.Addr && uint64(o.SlotEnd-o.Addr) >= o.Size+8, "slot %v to %v", o.Slot, o.SlotEnd)
	d.call("allocation", w.Allocated, o.Allocated)
	d.call("free", w.Free, o.Freed)
}

func (d *differ) damage(w *crashtest.WantDamage, got *evidence.Damage) {
	if w == nil || got == nil {
		d.want(w == nil && got == nil, "damage %+v", got)
		return
	}
	d.want(w.Offset == got.Offset, "offset %d", got.Offset)
	d.want(w.Bytes == got.Overwritten && w.Bytes == int(got.End-got.Start), "%d bytes from %v to %v", got.Overwritten, got.Start, got.End)
	d.want(strings.HasPrefix(strings.ReplaceAll(got.Bytes, " ", ""), w.Hex), "bytes %q", got.Bytes)
	d.want(w.Reaches == got.Reaches, "reaches the end: %v", got.Reaches)
}

// ownSources is the part of a path that all sources of the fixtures have.
const ownSources = "/testdata/heap/"

func (d *differ) call(what string, w *crashtest.WantCall, got *evidence.HeapCall) {
	if w == nil || got == nil {
		d.want(w == nil && got == nil, "%s %+v", what, got)
		return
	}
	var own []evidence.Site
	for _, f := range got.Stack.Frames {
		if strings.Contains(filepath.ToSlash(f.Site.File), ownSources) {
			own = append(own, f.Site)
		}
	}
	if len(w.Frames) == 0 {
		d.want(len(own) == 0, "%s at %s", what, places(own))
	}
	for i, lines := range w.Frames {
		d.want(i < len(own) && lines.Has(own[i].File, own[i].Line), "%s at %s of %d frames, where frame %d should be at %+v",
			what, places(own), len(got.Stack.Frames), i, lines)
	}
	if len(w.Frames) > 0 && len(own) > 0 {
		d.want(got.Site != nil && got.Site.PC == own[0].PC, "%s at the site %+v", what, got.Site)
	}
	d.thread(what, w.Thread, got.Thread)
}

func (d *differ) thread(what, want string, got *evidence.HeapThread) {
	switch {
	case got == nil || got.TID == 0 || got.Ordinal == 0:
		d.want(false, "%s by the thread %+v", what, got)
	case want == crashtest.ThreadEnded:
		d.want(got.Ended && got.Ref == nil && strings.Contains(got.Label(), "ended"), "%s by %s", what, got.Label())
	case want != "":
		d.want(!got.Ended && got.Ref != nil && got.Ref.Start == want, "%s by %s", what, got.Label())
	}
}

func places(sites []evidence.Site) string {
	var list []string
	for _, s := range sites {
		list = append(list, fmt.Sprintf("%s:%d", filepath.Base(s.File), s.Line))
	}
	return strings.Join(list, " < ")
}
