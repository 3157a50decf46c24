package agenttest_test

import (
	"os"
	"runtime"
	"strconv"
	"testing"

	"diagnose/agent"
	"diagnose/agent/agenttest"
	"diagnose/canary"
	"diagnose/evidence"
	"diagnose/quarantine"
)

// filled has so many objects in slots of several sizes, a quarter of them
// freed.
func filled(objects int) *agenttest.Heap {
	b := agenttest.New()
	slots := []int{32, 64, 64, 112, 256, 640}
	for n := 0; n < objects; {
		slot := slots[n/1000%len(slots)]
		count := min(65000/slot, objects-n)
		first := b.Small(slot, count)
		for i := range count {
			o := b.Alloc(first+evidence.Addr(slot*i), slot/2+i%8, agent.Call{}, agent.APIMalloc)
			if i%4 == 3 {
				b.Release(o)
			}
		}
		n += count
	}
	return b
}

// A heap that is damaged everywhere takes no more memory to judge than a whole one.
func TestBoundedMemory(t *testing.T) {
	b := filled(200000)
	for number, page := range b.Memory {
		if number*uint64(len(page)) < b.Root.Objects.Start {
			continue
		}
		for i := 32; i < len(page); i += 64 {
			page[i] ^= 0xff
		}
	}
	b.Finish()
	h, err := agent.Open(b.Memory, 0)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := canary.CheckHeap(h, canary.HeapOptions{Workers: 2})
	q := quarantine.Check(h, quarantine.Options{Workers: 2})
	runtime.ReadMemStats(&after)
	if c.Further < 20000 || q.Further < 10000 || len(c.Damages) < 100 || len(q.Damages) != 100 {
		t.Errorf("%d and %d canaries, %d and %d fills are damaged", len(c.Damages), c.Further, len(q.Damages), q.Further)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		t.Errorf("%d bytes were allocated for %d of objects", n, b.Root.Objects.Used)
	}
}

func BenchmarkFakedHeap(b *testing.B) {
	const objects = 1000000
	h, err := filled(objects).Open()
	if err != nil {
		b.Fatal(err)
	}
	measure(b, h, objects)
}

// BenchmarkRealCore judges the core of a program with DIAGNOSE_OBJECTS
// objects.
func BenchmarkRealCore(b *testing.B) {
	objects := 200000
	if n, err := strconv.Atoi(os.Getenv("DIAGNOSE_OBJECTS")); err == nil {
		objects = n
	}
	core, _, _, _ := many(b, objects, 350)
	h, err := agent.Open(openCore(b, core), 0)
	if err != nil {
		b.Fatal(err)
	}
	if info, err := os.Stat(core); err == nil {
		b.ReportMetric(float64(info.Size())/(1<<20), "MB-core")
	}
	measure(b, h, objects)
}

func measure(b *testing.B, h *agent.Heap, objects int) {
	for _, c := range []struct {
		name  string
		check func() uint64
	}{
		{"canary", func() uint64 { return canary.CheckHeap(h, canary.HeapOptions{}).Checked }},
		{"quarantine", func() uint64 { return quarantine.Check(h, quarantine.Options{}).Checked }},
		{"summary", func() uint64 { return h.Summarize(0).Live }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var n uint64
			for b.Loop() {
				n = c.check()
			}
			if n == 0 {
				b.Error("nothing was checked")
			}
			b.ReportMetric(float64(n), "checked")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(objects), "ns/object")
		})
	}
}
