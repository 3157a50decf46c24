package verdict

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/accesslog"
)

// TestFreedSince: a pointer is stale if its memory was freed after the pointer was stored.
func TestFreedSince(t *testing.T) {
	const first = "main t1\nt1 W memory 0->0 @1\nt1 W pointer 0->0 @2\n"
	for _, x := range []struct {
		name, log string
		heap      []int // the accesses that the heap made
		want      bool
	}{
		{"allocated, the pointer stored, used", "t1 W memory 0->5 @9\nt1 W pointer 0->64 @3\nt1 W memory 5->1 @4", []int{2}, false},
		{"freed after the pointer was stored", "t1 W pointer 0->64 @3\nt1 W memory 0->5 @9\nt1 W memory 5->1 @4", []int{3}, true},
		{"freed and allocated, and the pointer stored again", "t1 W pointer 0->64 @3\nt1 W memory 0->5 @9\nt1 W pointer 64->64 @3\nt1 W memory 5->1 @4", []int{3}, false},
		{"freed after the store", "t1 W pointer 0->64 @3\nt1 W memory 0->1 @4\nt1 W memory 1->5 @9", []int{4}, false},
		{"written by the program", "t1 W pointer 0->64 @3\nt1 W memory 0->5 @9\nt1 W memory 5->1 @4", nil, false},
	} {
		log := accesslog.Log(first + x.log + "\n")
		for _, i := range x.heap {
			log.Accesses[i].By = evidence.ByHeap
		}
		var store evidence.Access
		for i := range log.Accesses {
			if a := &log.Accesses[i]; a.Variable == 0 && a.New == 1 {
				store = *a
			}
		}
		if got := freedSince(log, &store); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}
