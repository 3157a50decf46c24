package agenttest_test

import (
	"reflect"
	"sync/atomic"
	"testing"

	"diagnose/agent"
	"diagnose/agent/agenttest"
	"diagnose/canary"
	"diagnose/evidence"
	"diagnose/quarantine"
)

// The judges of canaries and of freed memory find in one scan what each finds in its own,
// and the scan reads the spans and the words of their slots once.
func TestOneScan(t *testing.T) {
	b := agenttest.New()
	live := b.Alloc(b.Small(256, 10), 100, agent.Call{Site: 1}, agent.APIMalloc)
	freed := b.Alloc(b.Small(256, 10)+256, 100, agent.Call{Site: 1}, agent.APIMalloc)
	b.Release(freed)
	for addr, value := range map[evidence.Addr]byte{live + 104: 7, freed + 8: 7} {
		b.Memory.Write(addr, []byte{value})
	}
	if _, err := b.Open(); err != nil {
		t.Fatal(err)
	}
	var reads, bytes atomic.Int64
	h, err := agent.Open(counted{b.Memory, &reads, &bytes}, 0)
	if err != nil {
		t.Fatal(err)
	}
	count := func(f func()) int64 {
		before := reads.Load()
		f()
		return reads.Load() - before
	}
	var guards, sharedGuards *canary.HeapResult
	var fills, sharedFills *quarantine.Result
	walk := count(func() { h.Scan(1, func(int, *agent.Batch) error { return nil }) })
	alone := count(func() { guards = canary.CheckHeap(h, canary.HeapOptions{Workers: 1}) }) +
		count(func() { fills = quarantine.Check(h, quarantine.Options{Workers: 1}) })
	together := count(func() {
		c, q := canary.NewHeapCheck(h, canary.HeapOptions{Workers: 1}), quarantine.NewHeapCheck(h, quarantine.Options{Workers: 1})
		gaps := h.ScanFor(1, c.Visit, q.Visit)
		sharedGuards, sharedFills = c.Result(gaps[0]), q.Result(gaps[1])
	})
	if len(guards.Damages) != 1 || len(fills.Damages) != 1 {
		t.Fatalf("%d damaged canaries and %d written freed objects, want one each", len(guards.Damages), len(fills.Damages))
	}
	if !reflect.DeepEqual(guards, sharedGuards) || !reflect.DeepEqual(fills, sharedFills) {
		t.Errorf("one scan found %+v and %+v, two found %+v and %+v", sharedGuards, sharedFills, guards, fills)
	}
	if walk == 0 || together != alone-walk {
		t.Errorf("one scan made %d reads; two made %d, of which each walk %d", together, alone, walk)
	}
}
