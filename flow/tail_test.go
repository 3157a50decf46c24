package flow_test

import (
	"testing"

	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/internal/recordtest"
)

// A trace that leaves out the first instructions has the same steps after them as one of the whole run, wherever it begins: in a block
// of translated code, in a string instruction, before and after calls of the library.
func TestTail(t *testing.T) {
	for _, flags := range [][]string{{"-O0", "-pthread"}, {"-O2", "-pthread"}} {
		p, err := recordtest.Read("testdata/tail.c")
		if err != nil {
			t.Fatal(err)
		}
		p.Flags = flags
		rec, _ := p.Record(t).Open(t)
		whole, err := flow.Record(t.Context(), rec, flow.Request{})
		if err != nil || whole.Cut {
			t.Fatalf("cut %v, %v", whole.Cut, err)
		}
		n, err := flow.Count(t.Context(), rec, flow.Request{})
		if err != nil {
			t.Fatal(err)
		}
		if own := instructions(whole); n < uint64(own) || n > uint64(own)+1000 {
			t.Errorf("%v: %d instructions are counted, the trace has %d", flags, n, own)
		}
		if bounded, err := flow.Count(t.Context(), rec, flow.Request{Most: 5000}); err != nil || bounded != 5000 {
			t.Errorf("%v: counted to %d of at most 5000, %v", flags, bounded, err)
		}
		for _, skip := range []uint64{1, 2, 77, n / 3, n/2 + 1, n - n/7, n - 200} {
			tail, err := flow.Record(t.Context(), rec, flow.Request{Skip: skip})
			if err != nil {
				t.Fatalf("%v, %d left out: %v", flags, skip, err)
			}
			compareTail(t, whole, tail, skip)
		}
	}
}

// instructions is how many steps of a trace are instructions.
func instructions(x *flow.Trace) (n int) {
	for k := range x.Len() {
		if !x.Step(k).Library {
			n++
		}
	}
	return n
}

// compareTail compares the instructions of a trace with the last of the whole one. Between them, what happened in the library may be told
// only where the one before it is known.
func compareTail(t *testing.T, whole, tail *flow.Trace, skip uint64) {
	t.Helper()
	if left := instructions(whole) - instructions(tail); uint64(left) > skip || uint64(left)+1000 < skip {
		t.Fatalf("%d instructions are missing where %d were left out", left, skip)
	}
	at := whole.Len()
	for k := tail.Len() - 1; k >= 0; k-- {
		s := tail.Step(k)
		if s.Library {
			continue
		}
		for at--; whole.Step(at).Library; at-- {
		}
		if w := whole.Step(at); w.PC != s.PC || w.Thread != s.Thread || w.Ordinal != s.Ordinal {
			t.Fatalf("%d left out: step %d of %d is %v of thread %d, not %v of thread %d", skip, k, tail.Len(), s.PC, s.Thread, w.PC, w.Thread)
		}
		for r := x86.RAX; r.General(); r++ {
			if have, want := tail.Register(k, r), whole.Register(at, r); have != want {
				t.Fatalf("%d left out: %v is %#x at step %d, not %#x", skip, r, have, k, want)
			}
		}
	}
}
