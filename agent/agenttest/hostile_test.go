package agenttest_test

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"testing"
	"unsafe"

	"diagnose/agent"
	"diagnose/agent/agenttest"
	"diagnose/canary"
	"diagnose/evidence"
	"diagnose/quarantine"
)

const heapSize = uint64(unsafe.Sizeof(agent.RawHeap{}))

// counted counts the reads of a memory and the bytes asked for.
type counted struct {
	agenttest.Memory
	reads, bytes *atomic.Int64
}

func (m counted) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	m.reads.Add(1)
	n, err := m.Memory.ReadMemory(addr, p)
	m.bytes.Add(int64(n))
	return n, err
}

// Claims about memory that is not there cost reads that fail, a bounded number.
func TestClaims(t *testing.T) {
	for name, claim := range map[string]func(b *agenttest.Heap, r *agent.RawRoot){
		"everything": func(_ *agenttest.Heap, r *agent.RawRoot) {
			for _, w := range []struct {
				*agent.RawWindow
				limit, element uint64
			}{{&r.Heaps, agent.OffThreads - agent.OffHeaps, heapSize}, {&r.Threads, agent.OffSites - agent.OffThreads, 32},
				{&r.Sites, agent.OffSpans - agent.OffSites, 104}, {&r.Spans, agent.OffMeta - agent.OffSpans, 128},
				{&r.Meta, agent.OffObjects - agent.OffMeta, 1}, {&r.Objects, agent.ObjectsLimit, 1}} {
				w.Mapped, w.Used = w.limit, w.limit/w.element
			}
			r.Boundary = r.Objects.Start + agent.ObjectsLimit
		},
		"a span of everything": func(b *agenttest.Heap, r *agent.RawRoot) {
			r.Spans.Mapped, r.Spans.Used = agent.OffMeta-agent.OffSpans, 1<<28
			r.Meta.Mapped = agent.OffObjects - agent.OffMeta
			slot := evidence.Addr(r.Objects.Start + agent.Unit + 16)
			raw := *b.Span(slot)
			raw.Units, raw.Slots, raw.Carved = 1<<27, 1<<31, 1<<31
			put(b.Memory, r.Spans.Start+128, raw)
		},
		"rings of everything": func(b *agenttest.Heap, r *agent.RawRoot) {
			r.Meta.Mapped = agent.OffObjects - agent.OffMeta
			heap := b.Heaps[1]
			for i := range heap.Bins {
				heap.Bins[i].Ring = agent.RawRing{Entries: r.Meta.Start, Tail: 1 << 31, Mask: 1<<31 - 1}
			}
			put(b.Memory, r.Heaps.Start+heapSize, heap)
		},
	} {
		b := agenttest.New()
		slot := b.Small(48, 100)
		b.Alloc(slot, 24, agent.Call{}, agent.APIMalloc)
		b.Finish()
		root := b.Root
		claim(b, &root)
		put(b.Memory, root.Base, root)
		m := counted{b.Memory, new(atomic.Int64), new(atomic.Int64)}
		h, err := agent.Open(m, 0)
		if err != nil {
			t.Fatal(name, err)
		}
		c := canary.CheckHeap(h, canary.HeapOptions{})
		q := quarantine.Check(h, quarantine.Options{})
		s := h.Summarize(0)
		t.Logf("%s: %d reads of %d bytes", name, m.reads.Load(), m.bytes.Load())
		if n := m.bytes.Load(); n > 1<<20 {
			t.Errorf("%s: %d bytes were read", name, n)
		}
		if n := m.reads.Load(); n > 10000 {
			t.Errorf("%s: %d reads", name, n)
		}
		if len(c.Limits)+len(q.Limits)+s.Gaps.Count == 0 || len(s.Gaps.First) > 8 {
			t.Errorf("%s: nothing is said, or too much: %+v", name, s.Gaps)
		}
	}
}

// Nothing that is read may be of any use: the walk ends, and says why.
func TestNothingReadable(t *testing.T) {
	b := agenttest.New()
	b.Alloc(b.Small(48, 100), 24, agent.Call{}, agent.APIMalloc)
	b.Finish()
	h, err := agent.Open(failing{b.Memory}, 0)
	if err != nil {
		t.Fatal(err)
	}
	c, q := canary.CheckHeap(h, canary.HeapOptions{}), quarantine.Check(h, quarantine.Options{})
	if len(c.Limits) != 1 || len(q.Limits) != 1 || c.Checked+q.Checked != 0 {
		t.Errorf("got %+v, %+v", c, q)
	}
	if _, _, err := h.Lookup(evidence.Addr(b.Root.Objects.Start + agent.Unit + 100)); !errors.Is(err, errGone) {
		t.Errorf("got %v", err)
	}
}

// failing memory has the root alone.
type failing struct{ agenttest.Memory }

var errGone = errors.New("the process is gone")

func (m failing) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	if addr >= agent.Base+4096 {
		return 0, errGone
	}
	return m.Memory.ReadMemory(addr, p)
}

// put writes one of the Raw types into memory.
func put(m agenttest.Memory, addr uint64, raw any) {
	p, err := binary.Append(nil, binary.LittleEndian, raw)
	if err != nil {
		panic(err)
	}
	m.Write(evidence.Addr(addr), p)
}
