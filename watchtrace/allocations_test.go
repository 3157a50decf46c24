package watchtrace_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/recordtest"
	"diagnose/replay/record"
	"diagnose/watchtrace"
)

// TestSame: an object corresponds to that of the same allocation in another run,
// whatever its address, and to none if that run allocated fewer.
func TestSame(t *testing.T) {
	p, err := recordtest.Read(filepath.Join("..", "internal", "testdata", "trace", "objects.c"))
	if err != nil {
		t.Fatal(err)
	}
	program := p.Build(t)
	ended := func(args ...string) *image.Process {
		r := recordtest.RecordProgram(t, program, args, "", "exit 0")
		core, err := image.OpenCore(filepath.Join(r.Dir, record.CoreName), image.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { core.Close() })
		return core
	}
	allocations := func(p *image.Process) *watchtrace.Allocations {
		a, err := watchtrace.NewAllocations(p)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	item := func(p *image.Process, n int) evidence.Addr {
		v, err := image.Uint64(p, resolve(t, p, fmt.Sprintf("items[%d]", n))[0].Addr)
		if err != nil {
			t.Fatal(err)
		}
		return evidence.Addr(v)
	}
	one, two, fewer := ended("0"), ended("1"), ended("2", "fewer")
	here, there, few := allocations(one), allocations(two), allocations(fewer)
	line := resolve(t, one, "malloc@objects.c:15#1")
	if line[0].Addr != item(one, 0) {
		t.Fatalf("the first object is at %v, the program's at %v", line[0].Addr, item(one, 0))
	}
	site := &evidence.Site{File: "objects.c", Line: 15}
	moved := false
	for n := range 3 {
		o := &evidence.HeapObject{Addr: item(one, n), Size: 16, Allocated: &evidence.HeapCall{Site: site}}
		got, err := here.Same(o, there)
		if err != nil || got != item(two, n) {
			t.Errorf("item %d: %v, %v; want %v", n, got, err, item(two, n))
		}
		moved = moved || got != o.Addr
	}
	if !moved {
		t.Error("the objects lie where they did: nothing was shown")
	}
	own, err := here.Own()
	if err != nil || !slices.IsSorted(own) {
		t.Errorf("the program's own objects: %v, %v", own, err)
	}
	for n := range 3 {
		if !slices.Contains(own, item(one, n)) {
			t.Errorf("item %d at %v is none of the program's own objects %v", n, item(one, n), own)
		}
	}
	last := &evidence.HeapObject{Addr: item(one, 2), Size: 16, Allocated: &evidence.HeapCall{Site: site}}
	if got, err := here.Same(last, few); err == nil || !strings.Contains(err.Error(), "no such object: 2") {
		t.Errorf("of a run with two items the third is at %v, %v", got, err)
	}
}

// TestOwnOpenMP: what a runtime of OpenMP allocates for itself is none of the program's objects, though a line of
// the program called it.
func TestOwnOpenMP(t *testing.T) {
	p, err := recordtest.Read(filepath.Join("..", "internal", "testdata", "trace", "openmp.c"))
	if err != nil {
		t.Fatal(err)
	}
	r := recordtest.RecordProgram(t, p.Build(t), nil, "", p.Ends)
	core, err := image.OpenCore(filepath.Join(r.Dir, record.CoreName), image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	a, err := watchtrace.NewAllocations(core)
	if err != nil {
		t.Fatal(err)
	}
	item, err := image.Uint64(core, resolve(t, core, "item")[0].Addr)
	if err != nil {
		t.Fatal(err)
	}
	own, err := a.Own()
	if err != nil || !slices.Equal(own, []evidence.Addr{evidence.Addr(item)}) {
		t.Errorf("the program's own objects are %v, %v; want %#x only", own, err, item)
	}
}
