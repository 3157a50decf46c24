package unwind

import (
	"reflect"
	"sync"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/crashtest"
)

func openThreads(t *testing.T) *image.Process {
	t.Helper()
	f := crashtest.Named(t, "threads_200")
	v, _ := f.Variant("O2")
	p, err := image.OpenCore(f.Crash(t, v).Core, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// TestTableInMemory finds the same rows by the program headers in memory as by
// the sections of the file. The vDSO and deleted files need this.
func TestTableInMemory(t *testing.T) {
	p := openThreads(t)
	u := New(p)
	var files, memory moduleCache
	compared := 0
	for _, f := range u.Walk(&p.Threads[len(p.Threads)-1], 100).Frames {
		pc := f.PC() - evidence.Addr(f.Lookup)
		m := p.ModuleAt(pc)
		if m == nil {
			t.Fatalf("no module at %v", pc)
		}
		fileless := &image.Module{Path: m.Path, Bias: m.Bias, Start: m.Start, End: m.End}
		want, ok1, err1 := files.of(p, m).row(pc)
		got, ok2, err2 := memory.of(p, fileless).row(pc)
		if !ok1 || !ok2 || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: in memory %+v, %v, %v; in the file %+v, %v, %v", pc, got, ok2, err2, want, ok1, err1)
		}
		compared++
	}
	if compared < 4 {
		t.Errorf("only %d frames were compared", compared)
	}
}

// TestConcurrentWalks walks all threads at once with one unwinder.
func TestConcurrentWalks(t *testing.T) {
	p := openThreads(t)
	if len(p.Threads) != 201 {
		t.Fatalf("%d threads, want 201", len(p.Threads))
	}
	u, alone := New(p), New(p)
	stacks := make([]Stack, len(p.Threads))
	var wait sync.WaitGroup
	for i := range p.Threads {
		wait.Go(func() { stacks[i] = u.Walk(&p.Threads[i], 100) })
	}
	wait.Wait()
	for i := range stacks {
		want := alone.Walk(&p.Threads[i], 100)
		if want.Stopped != "" || !reflect.DeepEqual(stacks[i], want) {
			t.Errorf("thread %d: %+v, alone %+v", i, stacks[i], want)
		}
	}
}
