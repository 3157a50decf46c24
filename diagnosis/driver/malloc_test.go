package driver_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// mallocMisuse is a function of testdata/malloc and what the first finding has to say.
type mallocMisuse struct {
	name  string
	kinds []evidence.FindingKind
	// size is that of the object in bytes, 0 if none has to be named; held: a pointer to it is named.
	size uint64
	held bool
	// untold: where the call of free is a jump, its argument may be in no frame any more, and then there is no finding.
	untold bool
}

var (
	overflow = []evidence.FindingKind{evidence.FindingHeapOverflow}
	header   = []evidence.FindingKind{evidence.FindingHeapHeader}
	double   = []evidence.FindingKind{evidence.FindingDoubleFree}
	invalid  = []evidence.FindingKind{evidence.FindingInvalidFree}
	stale    = []evidence.FindingKind{evidence.FindingUseAfterFree}
)

var misusesC = []mallocMisuse{
	{"over_text", overflow, 40, true, false}, {"over_numbers", overflow, 40, true, false}, {"over_unsorted", overflow, 72, true, false},
	{"over_top", overflow, 24, true, false}, {"off_by_null", overflow, 40, true, false}, {"over_pointers", overflow, 40, true, false},
	{"under", header, 40, false, false}, {"double_tcache", double, 56, true, true}, {"double_fast", double, 56, false, true},
	{"double_large", double, 2008, true, true}, {"double_merged", double, 0, false, true}, {"double_top", double, 0, false, true},
	{"free_inside", invalid, 104, true, true}, {"free_aligned_inside", invalid, 104, true, true}, {"free_stack", invalid, 0, false, true},
	{"free_global", invalid, 0, false, true}, {"realloc_inside", invalid, 104, true, true}, {"stale_tcache", stale, 0, false, false},
	{"stale_tcache_seen", append(stale, invalid...), 0, false, false}, {"stale_unsorted", stale, 2200, true, false}, {"stale_back", stale, 2200, true, false},
	{"stale_small", stale, 1608, true, false},
}

var misusesCxx = []mallocMisuse{
	{"vector_over", overflow, 40, false, false}, {"string_over", overflow, 40, false, false},
	{"delete_twice", double, 56, false, false}, {"delete_inside", invalid, 168, false, true},
}

// glibc is a C library to build for: the system's, or one below a root.
type glibc struct{ name, root string }

// libraries are the C libraries that the programs are built for: the installed one, and those of the roots that
// DIAGNOSE_GLIBC lists (scripts/glibc-roots makes them).
func libraries() []glibc {
	list := []glibc{{name: "installed"}}
	for _, root := range strings.Fields(os.Getenv("DIAGNOSE_GLIBC")) {
		list = append(list, glibc{filepath.Base(root), root})
	}
	return list
}

// flags are the compiler's options to build for the library.
func (g glibc) flags() []string {
	if g.root == "" {
		return nil
	}
	lib, usr := filepath.Join(g.root, "lib/x86_64-linux-gnu"), filepath.Join(g.root, "usr/lib/x86_64-linux-gnu")
	return []string{"--sysroot=" + g.root, "-B" + usr, "-L" + lib, "-L" + usr,
		"-Wl,--dynamic-linker=" + filepath.Join(g.root, "lib64/ld-linux-x86-64.so.2"), "-Wl,-rpath," + lib + ":" + usr}
}

// TestMalloc: each misuse of the heap that malloc notices, or that makes it fault, is told with the object that was misused; the same
// code without the misuse has no finding.
func TestMalloc(t *testing.T) {
	full := os.Getenv("DIAGNOSE_MATRIX") == "full"
	for _, lib := range libraries() {
		for _, build := range []struct {
			source, compiler, level string
			list                    []mallocMisuse
			quick                   bool
		}{
			{"aborts.c", "gcc", "-O1", misusesC, true}, {"aborts.c", "clang", "-O2", misusesC, false}, {"aborts.c", "gcc", "-O0", misusesC, false},
			{"aborts.c", "gcc", "-O2", misusesC, false}, {"aborts.cc", "g++", "-O1", misusesCxx, true}, {"aborts.cc", "clang++", "-O2", misusesCxx, false},
		} {
			if !full && !build.quick || lib.root != "" && (strings.Contains(build.compiler, "clang") || strings.Contains(build.compiler, "+")) {
				continue
			}
			name := fmt.Sprintf("%s/%s%s/%s", lib.name, build.compiler, build.level, build.source)
			t.Run(name, func(t *testing.T) {
				exe := crashtest.Compile(t, crashtest.Program{Source: "testdata/malloc/" + build.source, Compiler: build.compiler,
					Output: "aborts", Flags: append([]string{build.level, "-w"}, lib.flags()...)})
				for _, m := range build.list {
					t.Run(m.name, func(t *testing.T) {
						if lib.root != "" && exec.Command(exe, m.name).Run() == nil {
							t.Skip("this version of malloc does not notice it")
						}
						m.check(t, exe)
					})
				}
			})
		}
	}
}

func (m *mallocMisuse) check(t *testing.T, exe string) {
	env := []string{"LIBC_FATAL_STDERR_=1"}
	c := crash(t, driver.Request{Core: crashtest.Core(t, exe, crashtest.Run{Args: []string{m.name}, Env: env})})
	if len(c.Findings) == 0 && m.untold {
		t.Logf("%s: no finding", c.Failure.Message)
		return
	}
	if len(c.Findings) == 0 {
		t.Errorf("%s (%s): no finding", c.Failure.Kind, c.Failure.Message)
		return
	}
	f := &c.Findings[0]
	if !slices.Contains(m.kinds, f.Kind) || f.Heap == nil {
		t.Errorf("%s (%s): %s, want %v", c.Failure.Message, f.Kind, f.Summary, m.kinds)
		return
	}
	switch o := f.Heap.Object; {
	case m.size == 0:
	case o == nil:
		t.Errorf("%s: no object, want one of %d bytes", f.Summary, m.size)
	case o.Size != m.size:
		t.Errorf("%s: an object of %d bytes, want %d", f.Summary, o.Size, m.size)
	case m.held && len(o.Holders) == 0:
		t.Errorf("%s: no pointer to the object", f.Summary)
	}
	if f.Proof != evidence.FromCore && f.Proof != evidence.Inferred {
		t.Errorf("%s: %s", f.Summary, f.Proof)
	}
	fixed := crash(t, driver.Request{Core: crashtest.Core(t, exe, crashtest.Run{Args: []string{m.name, "fixed"}, Env: env})})
	if len(fixed.Findings) != 0 {
		t.Errorf("the fixed program: %s", fixed.Findings[0].Summary)
	}
}
