package agent_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"diagnose/agent"
	"diagnose/agent/agenttest"
	"diagnose/evidence"
)

func open(t testing.TB, b *agenttest.Heap) *agent.Heap {
	t.Helper()
	h, err := b.Open()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestOpenWithoutAgent(t *testing.T) {
	m := agenttest.Memory{}
	if _, err := agent.Open(m, 0); !errors.Is(err, agent.ErrAbsent) {
		t.Errorf("empty memory: %v", err)
	}
	m.Write(agent.Base, make([]byte, 64))
	if _, err := agent.Open(m, 0); !errors.Is(err, agent.ErrAbsent) {
		t.Errorf("something else at the address: %v", err)
	}
	if _, err := agent.Open(m, 0x1000); !errors.Is(err, agent.ErrAbsent) {
		t.Errorf("no memory at the symbol's value: %v", err)
	}
}

func TestOpenElsewhere(t *testing.T) {
	for _, root := range []evidence.Addr{0, agent.Base} {
		b := agenttest.New()
		b.Finish()
		if h, err := agent.Open(b.Memory, root); err != nil || h.Root().PID != 4711 {
			t.Errorf("root %v: %v", root, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for want, spoil := range map[string]func(r *agent.RawRoot){
		"version 3":                    func(r *agent.RawRoot) { r.Version = 3 },
		"bytes where version 2 has":    func(r *agent.RawRoot) { r.Size-- },
		"had not finished its start":   func(r *agent.RawRoot) { r.Ready = 0 },
		"implausible base":             func(r *agent.RawRoot) { r.Base++ },
		"window of the sites is at":    func(r *agent.RawRoot) { r.Sites.Start++ },
		"window of the heaps is impl":  func(r *agent.RawRoot) { r.Heaps.Used = 1 << 40 },
		"window of the spans is impl":  func(r *agent.RawRoot) { r.Spans.Mapped = 1 << 50 },
		"window of the objects is imp": func(r *agent.RawRoot) { r.Objects.Mapped = agent.ObjectsLimit + 1 },
		"implausible boundary":         func(r *agent.RawRoot) { r.Boundary = 1 },
		"implausible options":          func(r *agent.RawRoot) { r.Options.FillBytes = 1 << 30 },
	} {
		b := agenttest.New()
		b.Finish()
		spoil(&b.Root)
		write(t, b.Memory, agent.Base, b.Root)
		_, err := agent.Open(b.Memory, 0)
		if err == nil || errors.Is(err, agent.ErrAbsent) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// The first pages of the root are there, the rest is not.
func TestOpenTruncated(t *testing.T) {
	b := agenttest.New()
	b.Finish()
	m := agenttest.Memory{}
	var p [4096]byte
	if _, err := b.Memory.ReadMemory(agent.Base, p[:]); err != nil {
		t.Fatal(err)
	}
	m.Write(agent.Base, p[:16])
	if _, err := agent.Open(short{m, 16}, 0); err == nil || errors.Is(err, agent.ErrAbsent) {
		t.Errorf("got %v", err)
	}
}

// short is memory that ends some bytes after the agent's base.
type short struct {
	agenttest.Memory
	n evidence.Addr
}

func (m short) ReadMemory(addr evidence.Addr, p []byte) (int, error) {
	if addr+evidence.Addr(len(p)) > agent.Base+m.n {
		return 0, errors.New("the memory ends here")
	}
	return m.Memory.ReadMemory(addr, p)
}

func TestLookup(t *testing.T) {
	b := agenttest.New()
	site, thread := b.Site(0x401000, 0x402000), b.Thread(100, true)
	by := agent.Call{Site: site, Thread: thread}
	slot := b.Small(48, 100)
	b.Alloc(slot+48, 24, by, agent.APINewArray)
	large := b.Large(4096-8, 200000-200000%16, 4096+8-200000%4096+200000%16, by, true)
	h := open(t, b)

	o, found, err := h.Lookup(slot + 48 + 47)
	want := agent.Object{Addr: slot + 48, Size: 24, Slot: slot + 48, SlotEnd: slot + 96, State: agent.Live, API: agent.APINewArray, Allocated: by}
	if o != want || !found || err != nil {
		t.Errorf("got %+v, %v, %v", o, found, err)
	}
	if o, found, err = h.Lookup(slot); o.State != agent.Fresh || o.Size != 0 || !found || err != nil {
		t.Errorf("fresh slot: %+v, %v, %v", o, found, err)
	}
	o, found, err = h.Lookup(large + 5)
	if !o.Large || !o.Guarded || o.Addr != large || o.Size != 200000 || !found || err != nil {
		t.Errorf("large object: %+v, %v, %v", o, found, err)
	}
	if deep, _, _ := h.Lookup(large + 150000); deep != o {
		t.Errorf("in a further unit: %+v", deep)
	}
	for _, addr := range []evidence.Addr{slot - 1, slot + 48*100, o.SlotEnd, 0, ^evidence.Addr(0), evidence.Addr(h.Root().Objects.Start) + agent.ObjectsLimit} {
		if o, found, err := h.Lookup(addr); found || err != nil {
			t.Errorf("%v is in %+v, %v", addr, o, err)
		}
		if w, found, err := h.StateWord(addr); found || err != nil {
			t.Errorf("%v has the word %+v, %v", addr, w, err)
		}
	}
}

// TestStateWord: the word of a slot says whether it holds an object.
func TestStateWord(t *testing.T) {
	b := agenttest.New()
	slot := b.Small(48, 10)
	b.Alloc(slot+48, 24, agent.Call{}, agent.APIMalloc)
	large := b.Large(4096-8, 200000-200000%16, 4096+8-200000%4096+200000%16, agent.Call{}, true)
	h := open(t, b)
	for _, x := range []struct {
		addr evidence.Addr
		live bool
	}{{slot, false}, {slot + 48 + 30, true}, {slot + 96, false}, {large, true}, {large + 150000, true}} {
		w, found, err := h.StateWord(x.addr)
		if !found || err != nil {
			t.Fatalf("%v: %v, %v", x.addr, found, err)
		}
		var raw [8]byte
		if n, err := b.Memory.ReadMemory(w.Addr, raw[:w.Size]); n < w.Size || err != nil {
			t.Fatalf("%+v: %d bytes, %v", w, n, err)
		}
		if live := w.Live(binary.LittleEndian.Uint64(raw[:])); live != x.live {
			t.Errorf("%v in the word %+v, % x: live %v", x.addr, w, raw, live)
		}
	}
}

func TestNearest(t *testing.T) {
	b := agenttest.New()
	slot := b.Small(48, 10) // 16 bytes of guard
	for i, size := range []int{24, 24, 23, 24} {
		b.Alloc(slot+evidence.Addr(48*i), size, agent.Call{}, agent.APIMalloc)
	}
	b.Free(slot+48, agent.Call{Site: 1}, 1, 2)
	right := b.Large(65536-24-8192, 8192+16, 8, agent.Call{}, true)
	end := evidence.Addr(b.Span(right).End)
	empty := b.Small(64, 10)
	after := b.Small(64, 10)
	b.Alloc(after, 10, agent.Call{}, agent.APIMalloc)
	plain := b.Large(64, 100000, 24, agent.Call{}, false)
	h := open(t, b)
	for _, c := range []struct {
		name     string
		addr     evidence.Addr
		object   evidence.Addr
		where    agent.Where
		distance uint64
	}{
		{"first byte", slot, slot, agent.Inside, 0},
		{"last byte", slot + 23, slot, agent.Inside, 23},
		{"in a freed object", slot + 48 + 5, slot + 48, agent.Inside, 5},
		{"directly after", slot + 24, slot, agent.Behind, 0},
		{"in the middle", slot + 35, slot, agent.Behind, 11},
		{"nearer to the next", slot + 36, slot + 48, agent.Before, 11},
		{"as near to either", slot + 96 + 35, slot + 96, agent.Behind, 12},
		{"directly before", slot + 47, slot + 48, agent.Before, 0},
		{"before the first", slot - 16, slot, agent.Before, 15},
		{"end of the last used slot", slot + 4*48 - 1, slot + 3*48, agent.Behind, 23},
		{"fresh slot", slot + 4*48, slot + 3*48, agent.InFresh, 24},
		{"last byte of the last slot", slot + 10*48 - 1, slot + 3*48, agent.InFresh, 24 + 6*48 - 1},
		{"after the last slot", slot + 10*48 + 7, slot + 3*48, agent.Behind, 24 + 6*48 + 7},
		{"before a large one", right - 1, right, agent.Before, 0},
		{"far before a large one", right - 5000, right, agent.Before, 4999},
		{"after a large one", right + 8192 + 16, right, agent.Behind, 0},
		{"guard page", end, right, agent.InGuardPage, 8},
		{"last byte of the guard page", end + 4095, right, agent.InGuardPage, 8 + 4095},
		{"last byte of a large one", plain + 99999, plain, agent.Inside, 99999},
		{"after one without a guard page", plain + 100000 + 30, plain, agent.Behind, 30},
		{"before a span after an empty one", after - 64, after, agent.Before, 63},
		{"beyond everything", plain - 64 + 131072 + 10, plain, agent.Behind, 131072 + 10 - 64 - 100000},
	} {
		n, found, err := h.Nearest(c.addr)
		if !found || err != nil || n.Object.Addr != c.object || n.Where != c.where || n.Distance != c.distance {
			t.Errorf("%s: got %v in or beside %v, distance %d (%v, %v); want %v %v %d",
				c.name, n.Where, n.Object.Addr, n.Distance, found, err, c.where, c.object, c.distance)
		}
	}
	for _, addr := range []evidence.Addr{empty + 100, plain + 1<<30, 0x1000, evidence.Addr(h.Root().Objects.Start) + 5} {
		if n, found, err := h.Nearest(addr); found || err != nil {
			t.Errorf("%v is near %+v, %v", addr, n, err)
		}
	}
}

func TestFillWord(t *testing.T) {
	b := agenttest.New()
	slot := b.Small(128, 10)
	b.Alloc(slot+256, 100, agent.Call{}, agent.APIMalloc)
	by := agent.Call{Site: b.Site(0x401234), Thread: b.Thread(7, false)}
	b.Free(slot+256, by, 1, 7)
	h := open(t, b)
	word := agent.FillWord(h.Root().Objects.Start, uint64(slot+256))
	for _, offset := range []int64{0, 8, -agent.FillLow, 4095 - agent.FillLow, 4096 - agent.FillLow, 8000, 20000} {
		o, got, found, err := h.FillWord(word + uint64(offset))
		if !found || err != nil || got != offset || o.Addr != slot+256 || o.State != agent.Quarantined {
			t.Errorf("offset %d: %v, %d, %v, %v", offset, o.Addr, got, found, err)
		}
		if gaps := h.Frees(1, &o); gaps.Count != 0 || o.Freed != by {
			t.Errorf("freed by %+v, %+v", o.Freed, gaps)
		}
	}
	for _, value := range []uint64{0, uint64(slot), word ^ 1<<50, agent.FillWord(h.Root().Objects.Start, uint64(slot)),
		agent.FillWord(h.Root().Objects.Start, uint64(slot+1<<20)), agent.FillTag << 48, ^uint64(0)} {
		if o, _, found, err := h.FillWord(value); found || err != nil {
			t.Errorf("%#x names %+v, %v", value, o, err)
		}
	}
}

func TestCalls(t *testing.T) {
	b := agenttest.New()
	site, thread := b.Site(0x401000, 0x402000, 0x403000), b.Thread(4242, true)
	h := open(t, b)
	pcs, err := h.Site(site)
	if err != nil || !reflect.DeepEqual(pcs, []evidence.Addr{0x401000, 0x402000, 0x403000}) {
		t.Errorf("site: %v, %v", pcs, err)
	}
	th, err := h.Thread(thread)
	if err != nil || th.TID != 4242 || !th.Ended {
		t.Errorf("thread: %+v, %v", th, err)
	}
	if h.Threads() != 1 {
		t.Errorf("%d threads", h.Threads())
	}
	for _, n := range []uint32{0, site + 1, 1 << 31} {
		if _, err := h.Site(n); err == nil {
			t.Errorf("site %d", n)
		}
		if _, err := h.Thread(n); err == nil {
			t.Errorf("thread %d", n)
		}
	}
}

func TestErrors(t *testing.T) {
	b := agenttest.New()
	raw := agent.RawError{Kind: agent.ErrorDoubleFree, When: agent.AtFree, Thread: 3, TID: 99, WordValid: 1, Pointer: 0x1234,
		Object: 0x1230, Size: 40, Word: 40 | 5<<agent.WordSite | 2<<agent.WordState, Slot: 0x1230, SlotEnd: 0x1260, FreeSite: 8, FreeThread: 9,
		Frames: 2, Fatal: 1, BytesLength: 1 << 30, API: uint32(agent.APINew)}
	raw.PC[0], raw.PC[1] = 0x11, 0x22
	b.Error(raw)
	raw.WordValid, raw.Frames, raw.BytesLength = 0, 1<<31, 3
	for range agent.MaxErrors {
		b.Error(raw)
	}
	list, more, err := open(t, b).Errors()
	if err != nil || len(list) != agent.MaxErrors || more != 1 {
		t.Fatalf("%d errors, %d more, %v", len(list), more, err)
	}
	e := list[0]
	want := agent.Object{Addr: 0x1230, Size: 40, Slot: 0x1230, SlotEnd: 0x1260, State: agent.Quarantined,
		Allocated: agent.Call{Site: 5}, Freed: agent.Call{Site: 8, Thread: 9}}
	if e.Object == nil || *e.Object != want || !e.Fatal || e.API != agent.APINew || len(e.Bytes) != agent.ErrorBytes ||
		!reflect.DeepEqual(e.Stack, []evidence.Addr{0x11, 0x22}) {
		t.Errorf("got %+v, object %+v", e, e.Object)
	}
	if e = list[1]; e.Object != nil || len(e.Stack) != agent.ErrorFrames || len(e.Bytes) != 3 {
		t.Errorf("got %+v", e)
	}
	b.Root.Errors = 0
	if _, _, err := open(t, b).Errors(); err == nil {
		t.Error("errors at 0")
	}
}

func TestSummarize(t *testing.T) {
	b := agenttest.New()
	one, two := agent.Call{Site: b.Site(1), Thread: 1}, agent.Call{Site: b.Site(2), Thread: 2}
	slot := b.Small(64, 9000)
	at := func(i int) evidence.Addr { return slot + evidence.Addr(64*i) }
	for i := range 8000 {
		b.Alloc(at(i), 10, one, agent.APIMalloc)
	}
	b.Alloc(at(8000), 50, agent.Call{Site: two.Site, Thread: 1}, agent.APIMalloc)
	b.Alloc(at(8001), 40, two, agent.APIMalloc)
	b.Free(at(0), two, 1, 3)
	b.Release(at(1))
	big := b.Large(64, 300000, 24, two, false)
	gone := b.Large(64, 200000, 24, one, false)
	b.FreeLarge(gone, two)
	cached := b.Large(64, 140000, 24, one, false)
	b.FreeLarge(cached, two)
	b.SetState(cached, agent.Reusable)
	b.Alloc(at(8002), 5, agent.Call{Site: 3, Thread: 9}, agent.APIMalloc) // there is no such site
	b.Heaps[0].Allocations, b.Heaps[1].Allocations, b.Heaps[1].Frees = 4, 8000, 3
	totals := open(t, b).Summarize(3)
	if totals.Gaps.Count != 0 || totals.Allocations != 8004 || totals.Frees != 3 {
		t.Errorf("got %+v", totals)
	}
	want := agent.Count{Live: 8002, LiveBytes: 7998*10 + 50 + 40 + 300000 + 5, Quarantined: 2, QuarantinedBytes: 10 + 200000,
		Reusable: 2, ReusableBytes: 10 + 140000, Largest: 300000}
	if totals.Count != want {
		t.Errorf("got %+v, want %+v", totals.Count, want)
	}
	sites := []agent.SiteCount{
		{agent.Call{Site: two.Site}, agent.Count{Live: 3, LiveBytes: 300090, Largest: 300000}},
		{one, agent.Count{Live: 7998, LiveBytes: 79980, Quarantined: 2, QuarantinedBytes: 200010, Reusable: 2, ReusableBytes: 140010, Largest: 10}},
		{agent.Call{Thread: 9}, agent.Count{Live: 1, LiveBytes: 5, Largest: 5}},
	}
	if !reflect.DeepEqual(totals.Sites, sites) {
		t.Errorf("got %+v", totals.Sites)
	}
	if b.Memory.Unmap(big, 8); totals.MappedBytes == 0 || totals.MetadataBytes == 0 {
		t.Errorf("got %+v", totals)
	}
}

// Parts that are not readable, or not the agent's, are counted and reported, and the rest is read.
func TestGaps(t *testing.T) {
	for want, spoil := range map[string]func(b *agenttest.Heap, slot evidence.Addr){
		"words of slots":        func(b *agenttest.Heap, slot evidence.Addr) { b.Memory.Unmap(evidence.Addr(b.Span(slot).Words), 1) },
		"unknown kind 9":        func(b *agenttest.Heap, slot evidence.Addr) { b.Span(slot).Kind = 9 },
		"length of 0 units":     func(b *agenttest.Heap, slot evidence.Addr) { b.Span(slot).Units = 0 },
		"implausible length":    func(b *agenttest.Heap, slot evidence.Addr) { b.Span(slot).Units = 1 << 31 },
		"do not fit":            func(b *agenttest.Heap, slot evidence.Addr) { b.Span(slot).Slots = 1 << 31 },
		"of 0 bytes":            func(b *agenttest.Heap, slot evidence.Addr) { b.Span(slot).Slot = 0 },
		"outside the metadata":  func(b *agenttest.Heap, slot evidence.Addr) { b.Span(slot).Words = 8 },
		"slots of 48 bytes aft": func(b *agenttest.Heap, slot evidence.Addr) { b.Span(slot).First = 0 },
		"a large object of":     func(b *agenttest.Heap, slot evidence.Addr) { b.Span(slot).Kind = agent.SpanLarge },
	} {
		b := agenttest.New()
		slot := b.Small(48, 100)
		b.Alloc(slot, 24, agent.Call{}, agent.APIMalloc)
		other := b.Small(1024, 8) // its words are on another page
		b.Alloc(other, 24, agent.Call{}, agent.APIMalloc)
		if want == "words of slots" {
			b.Span(other).Words += 4096
			b.Memory.Write(evidence.Addr(b.Span(other).Words), make([]byte, 64))
			b.Root.Meta.Mapped += 8192
			b.SetWord(other, 24|1<<agent.WordState)
		}
		mapped := b.Root.Meta.Mapped
		spoil(b, slot)
		b.Root.Meta.Mapped = mapped
		totals := open(t, b).Summarize(2)
		if totals.Gaps.Count != 1 || totals.Live != 1 || !strings.Contains(fmt.Sprint(totals.Gaps.First), want) {
			t.Errorf("%s: %d live, %+v", want, totals.Live, totals.Gaps)
		}
	}
}

// The units of a span belong to no other span.
func TestOverlappingSpans(t *testing.T) {
	b := agenttest.New()
	one, two := b.Small(48, 100), b.Small(48, 100)
	b.Alloc(one, 24, agent.Call{}, agent.APIMalloc)
	b.Alloc(two, 24, agent.Call{}, agent.APIMalloc)
	b.Span(one).Units = 2
	if totals := open(t, b).Summarize(1); totals.Live != 1 || totals.Gaps.Count != 0 {
		t.Errorf("got %+v", totals)
	}
}

// A unit may keep what a longer span wrote there.
func TestStaleInterior(t *testing.T) {
	b := agenttest.New()
	slot := b.Small(48, 2000) // two units
	b.Alloc(slot, 24, agent.Call{}, agent.APIMalloc)
	b.Span(slot).Units, b.Span(slot).Slots, b.Span(slot).Carved = 1, 100, 100
	h := open(t, b)
	if o, found, err := h.Lookup(slot + agent.Unit); found || err != nil {
		t.Errorf("got %+v, %v", o, err)
	}
	if n, found, err := h.Nearest(slot + agent.Unit); !found || err != nil || n.Object.Addr != slot || n.Where != agent.Behind {
		t.Errorf("got %+v, %v", n, err)
	}
}

// Nor is it the guard page of a shorter one.
func TestStaleInteriorOfLarge(t *testing.T) {
	b := agenttest.New()
	o := b.Large(agent.Unit-4096-1008-16, 1008, 16, agent.Call{}, true)
	next := b.Small(48, 10) // its unit becomes the rest of a longer run
	raw := b.Span(next)
	*raw = agent.RawSpan{Kind: agent.SpanInterior, Units: 1}
	n, found, err := open(t, b).Nearest(next)
	if !found || err != nil || n.Object.Addr != o || n.Where != agent.Behind {
		t.Errorf("got %+v, %v, %v", n, found, err)
	}
}

func TestQuarantineWraps(t *testing.T) {
	b := agenttest.New()
	slot := b.Small(32, 100)
	ring := &b.Heaps[1].Bins[1].Ring
	ring.Head, ring.Tail = ^uint32(0)-3, ^uint32(0)-3
	want := map[evidence.Addr]bool{}
	for i := range agenttest.RingSize {
		o := b.Alloc(slot+evidence.Addr(32*i), 8, agent.Call{}, agent.APIMalloc)
		b.Free(o, agent.Call{Site: 1}, 1, 1)
		want[o] = true
	}
	gaps := open(t, b).Quarantine(1, func(_ int, list []agent.Freed) error {
		for _, e := range list {
			delete(want, e.Object)
		}
		return nil
	})
	if len(want) != 0 || gaps.Count != 0 {
		t.Errorf("%d of %d entries were not listed, %+v", len(want), agenttest.RingSize, gaps)
	}
}

func TestImplausibleRings(t *testing.T) {
	for name, spoil := range map[string]func(r *agent.RawRing){
		"more than it holds":   func(r *agent.RawRing) { r.Tail = r.Head + agenttest.RingSize + 1 },
		"no power of two":      func(r *agent.RawRing) { r.Mask = 12 },
		"longer than metadata": func(r *agent.RawRing) { r.Mask = ^uint32(0) },
		"elsewhere":            func(r *agent.RawRing) { r.Entries = 0x1000 },
		"not aligned":          func(r *agent.RawRing) { r.Entries++ },
	} {
		b := agenttest.New()
		slot := b.Small(32, 100)
		b.Free(b.Alloc(slot, 8, agent.Call{}, agent.APIMalloc), agent.Call{Site: 1}, 1, 1)
		spoil(&b.Heaps[1].Bins[1].Ring)
		gaps := open(t, b).Quarantine(1, func(int, []agent.Freed) error {
			t.Errorf("%s: entries", name)
			return nil
		})
		if gaps.Count != 1 || !strings.Contains(gaps.First[0].Error(), "heap 1, class 1") {
			t.Errorf("%s: %+v", name, gaps)
		}
	}
}

// Rings that share their storage would multiply the work.
func TestRingsShareNothing(t *testing.T) {
	b := agenttest.New()
	slot := b.Small(32, 100)
	b.Free(b.Alloc(slot, 8, agent.Call{}, agent.APIMalloc), agent.Call{Site: 1}, 1, 0)
	b.Heaps = make([]agent.RawHeap, 100, 101)
	ring := agent.RawRing{Entries: b.Root.Meta.Start, Tail: 16, Mask: 15}
	for i := range b.Heaps {
		for class := range b.Heaps[i].Bins {
			b.Heaps[i].Bins[class].Ring = ring
		}
	}
	n := 0
	gaps := open(t, b).Quarantine(1, func(_ int, list []agent.Freed) error {
		n += len(list)
		return nil
	})
	if room := int(b.Root.Meta.Mapped) / 16; n > room || gaps.Count < 8000 || len(gaps.First) > 8 {
		t.Errorf("%d entries of %d, %d gaps, %d errors", n, room, gaps.Count, len(gaps.First))
	}
}
