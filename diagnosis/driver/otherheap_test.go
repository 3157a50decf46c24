package driver_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// heapUse is a function of testdata/allocator, and the finding on the object that it misuses.
type heapUse struct {
	name string
	kind evidence.FindingKind
	// size and state are the object's, 0 and "" if none has to be named.
	size  map[evidence.Allocator]uint64
	state evidence.ChunkState
	list  map[evidence.Allocator]evidence.FreeList
	// thread is the number of the thread whose cache has the object.
	thread int
}

func both(size uint64) map[evidence.Allocator]uint64 {
	return map[evidence.Allocator]uint64{evidence.Jemalloc: size, evidence.Tcmalloc: size}
}

var (
	cached = map[evidence.Allocator]evidence.FreeList{evidence.Jemalloc: evidence.ListThread, evidence.Tcmalloc: evidence.ListThread}
	paged  = map[evidence.Allocator]evidence.FreeList{evidence.Jemalloc: evidence.ListPages, evidence.Tcmalloc: evidence.ListPages}
	large  = map[evidence.Allocator]evidence.FreeList{evidence.Jemalloc: evidence.ListPages, evidence.Tcmalloc: evidence.ListThread}
)

var usesC = []heapUse{
	{"stale_small", evidence.FindingHeapObject, both(48), evidence.ChunkFree, cached, 1},
	{"stale_other_thread", evidence.FindingHeapObject, both(48), evidence.ChunkFree, cached, 2},
	{"stale_large", evidence.FindingHeapObject, nil, evidence.ChunkFree, large, 0},
	{"stale_huge", evidence.FindingHeapObject, nil, evidence.ChunkFree, paged, 0},
	{"over_text", evidence.FindingHeapOverflow, both(64), evidence.ChunkInUse, nil, 0},
	{"live", evidence.FindingHeapObject, both(48), evidence.ChunkInUse, nil, 0},
	{"free_stack", evidence.FindingInvalidFree, nil, "", nil, 0},
	{"free_global", evidence.FindingInvalidFree, nil, "", nil, 0},
}

var usesCxx = []heapUse{
	{"deleted", evidence.FindingHeapObject, both(96), evidence.ChunkFree, cached, 1},
}

// otherAllocators are the ways in which the programs get their allocator.
var otherAllocators = []struct {
	name    evidence.Allocator
	way     string
	flags   []string
	preload string
	quick   bool
}{
	{evidence.Jemalloc, "shared", []string{"-Wl,--no-as-needed", "-ljemalloc"}, "", true},
	{evidence.Jemalloc, "preload", nil, "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", false},
	{evidence.Jemalloc, "static", []string{"/usr/lib/x86_64-linux-gnu/libjemalloc.a", "-lstdc++", "-lm"}, "", false},
	{evidence.Tcmalloc, "minimal", []string{"-Wl,--no-as-needed", "-ltcmalloc_minimal"}, "", true},
	{evidence.Tcmalloc, "shared", []string{"-Wl,--no-as-needed", "-ltcmalloc"}, "", false},
	{evidence.Tcmalloc, "preload", nil, "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4", false},
	{evidence.Tcmalloc, "static", []string{"/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.a", "-lstdc++", "-lm"}, "", false},
}

// TestOtherHeap: the object of jemalloc or tcmalloc that a failure concerns is told with its state, and the same code
// without the misuse has no finding.
func TestOtherHeap(t *testing.T) {
	full := crashtest.FullMatrix()
	for _, a := range otherAllocators {
		for _, build := range []struct {
			source, compiler, level string
			list                    []heapUse
			quick                   bool
		}{
			{"uses.c", "gcc", "-O1", usesC, true}, {"uses.c", "clang", "-O2", usesC, false}, {"uses.c", "gcc", "-O0", usesC, false},
			{"uses.cc", "g++", "-O1", usesCxx, true}, {"uses.cc", "clang++", "-O2", usesCxx, false},
		} {
			if !full && !(a.quick && build.quick) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s/%s%s/%s", a.name, a.way, build.compiler, build.level, build.source), func(t *testing.T) {
				needFile(t, a.name, a.preload, a.flags)
				exe := crashtest.Compile(t, crashtest.Program{Source: "testdata/allocator/" + build.source, Compiler: build.compiler,
					Output: "uses", Flags: append([]string{build.level, "-w", "-pthread"}, a.flags...)})
				var env []string
				if a.preload != "" {
					env = []string{"LD_PRELOAD=" + a.preload}
				}
				for _, u := range build.list {
					t.Run(u.name, func(t *testing.T) { u.check(t, exe, env, a.name, a.way == "static") })
				}
			})
		}
	}
}

// needFile skips the test if the library is not installed.
func needFile(t *testing.T, name evidence.Allocator, preload string, flags []string) {
	t.Helper()
	file := preload
	for _, f := range flags {
		if strings.HasSuffix(f, ".a") {
			file = f
		}
		if library, ok := strings.CutPrefix(f, "-l"); ok && file == "" && strings.Contains(library, string(name)) {
			file = "/usr/lib/x86_64-linux-gnu/lib" + library + ".so"
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Skipf("%s is not installed", file)
	}
}

func (u *heapUse) check(t *testing.T, exe string, env []string, name evidence.Allocator, static bool) {
	fixed := crash(t, driver.Request{Core: crashtest.Core(t, exe, crashtest.Run{Args: []string{u.name, "fixed"}, Env: env})})
	if len(fixed.Findings) != 0 {
		t.Errorf("the fixed program: %s", fixed.Findings[0].Summary)
	}
	c := crash(t, driver.Request{Core: crashtest.Core(t, exe, crashtest.Run{Args: []string{u.name}, Env: env})})
	i := slices.IndexFunc(c.Findings, func(f evidence.Finding) bool { return f.Heap != nil && f.Kind == u.kind })
	if i < 0 {
		if static && u.kind == evidence.FindingInvalidFree {
			return // which frames are the allocator's is not known
		}
		t.Errorf("%s: no finding %s in %+v", c.Failure.Sentence, u.kind, c.Findings)
		return
	}
	f := &c.Findings[i]
	if f.Proof != evidence.FromCore && f.Proof != evidence.Inferred {
		t.Errorf("%s: %s", f.Summary, f.Proof)
	}
	o := f.Heap.Object
	switch {
	case o == nil:
		if u.size != nil || u.state != "" {
			t.Errorf("%s: no object", f.Summary)
		}
	case o.Allocator != name, u.size != nil && o.Size != u.size[name], u.state != "" && o.State != u.state, u.list != nil && o.List != u.list[name]:
		t.Errorf("%s: %+v", f.Summary, o)
	case u.thread != 0 && (o.Thread == nil || o.Thread.Number != u.thread):
		t.Errorf("%s: not of thread %d: %v", f.Summary, u.thread, o.Thread)
	}
}
