package agenttest

import (
	"encoding/binary"
	"fmt"

	"diagnose/agent"
	"diagnose/evidence"
)

// Heap is a heap that is being made. Its methods panic on what no agent does.
type Heap struct {
	Memory Memory
	// Root may be changed before Open.
	Root agent.RawRoot
	// Heaps are the heaps of threads; the first one is shared.
	Heaps []agent.RawHeap

	spans []agent.RawSpan
}

// New begins a heap at the first of the fixed addresses, with the defaults of
// an agent.
func New() *Heap {
	h := &Heap{Memory: Memory{}, Heaps: make([]agent.RawHeap, 2)}
	r := &h.Root
	r.Magic, r.Version, r.Size, r.Base, r.Ready, r.PID = agent.Magic, agent.Version, uint32(binary.Size(r)), agent.Base, 1, 4711
	r.Options = agent.RawOptions{Stacks: 8, FillBytes: 128, Quarantine: 1 << 20, Canary: agent.DefaultCanary}
	for _, w := range []struct {
		*agent.RawWindow
		offset uint64
	}{{&r.Heaps, agent.OffHeaps}, {&r.Threads, agent.OffThreads}, {&r.Sites, agent.OffSites}, {&r.Spans, agent.OffSpans},
		{&r.Meta, agent.OffMeta}, {&r.Objects, agent.OffObjects}} {
		*w.RawWindow = agent.RawWindow{Start: r.Base + w.offset}
	}
	h.appendRecord(&r.Threads, agent.RawThread{}) // number 0 is the unknown one
	h.appendRecord(&r.Sites, agent.RawSite{})
	r.Boundary = r.Objects.Start
	r.Errors = r.Base + 4096
	h.units(1) // as the agent: unit 0 is no object's
	return h
}

// units takes units off the objects' window, and maps them.
func (h *Heap) units(n int) (unit uint64) {
	unit = uint64(len(h.spans))
	for i := range n {
		raw := agent.RawSpan{Kind: agent.SpanInterior, Units: uint32(i)}
		if i == 0 {
			raw = agent.RawSpan{}
		}
		h.spans = append(h.spans, raw)
	}
	r := &h.Root
	h.Memory.Write(h.unit(unit), make([]byte, n*agent.Unit))
	r.Objects.Used += uint64(n) * agent.Unit
	r.Objects.Mapped = r.Objects.Used
	r.Boundary = r.Objects.Start + r.Objects.Used
	return unit
}

func (h *Heap) unit(n uint64) evidence.Addr {
	return evidence.Addr(h.Root.Objects.Start + n*agent.Unit)
}

// meta takes metadata.
func (h *Heap) meta(n int) uint64 {
	m := &h.Root.Meta
	at := m.Start + m.Used
	h.Memory.Write(evidence.Addr(at), make([]byte, n))
	m.Used += uint64(n+7) &^ 7
	m.Mapped = (m.Used + pageSize - 1) &^ (pageSize - 1)
	return at
}

// canary writes the canary bytes of the slot whose word is given.
func (h *Heap) canary(start, end evidence.Addr, word uint64) {
	p := make([]byte, end-start)
	for i := range p {
		p[i] = byte(word >> ((start + evidence.Addr(i)) % 8 * 8))
	}
	h.Memory.Write(start, p)
}

// CanaryWord is the word of which the guards of an object are made.
func (h *Heap) CanaryWord(object evidence.Addr) uint64 {
	number := agent.LargeNumber(h.Span(object).Words)
	if h.Span(object).Kind == agent.SpanSmall {
		number = agent.SlotNumber(h.wordAt(object))
	}
	return agent.CanaryWord(h.Root.Options.Canary, number)
}

// Slot is where the slot of an object begins.
func (h *Heap) Slot(object evidence.Addr) evidence.Addr {
	if h.Span(object).Kind == agent.SpanSmall {
		return object
	}
	return h.start(object)
}

func (h *Heap) put64(addr, v uint64) {
	h.Memory.Write(evidence.Addr(addr), binary.LittleEndian.AppendUint64(nil, v))
}

// Word reads the word of an object.
func (h *Heap) Word(object evidence.Addr) uint64 {
	if raw := h.Span(object); raw.Kind != agent.SpanSmall {
		return raw.Reserved[0]
	}
	var p [8]byte
	if _, err := h.Memory.ReadMemory(evidence.Addr(h.wordAt(object)), p[:]); err != nil {
		panic(err)
	}
	return binary.LittleEndian.Uint64(p[:])
}

// SetWord writes the word of an object.
func (h *Heap) SetWord(object evidence.Addr, word uint64) {
	if raw := h.Span(object); raw.Kind != agent.SpanSmall {
		raw.Reserved[0] = word
		return
	}
	h.put64(h.wordAt(object), word)
}

func (h *Heap) wordAt(object evidence.Addr) uint64 {
	raw := h.Span(object)
	offset := uint64(object-h.start(object)) - uint64(raw.First)
	if offset%uint64(raw.Slot) != 0 {
		panic(fmt.Sprintf("no slot begins at %v", object))
	}
	return raw.Words + offset/uint64(raw.Slot)*8
}

func (h *Heap) head(object evidence.Addr) uint64 {
	unit := (uint64(object) - h.Root.Objects.Start) / agent.Unit
	if raw := h.spans[unit]; raw.Kind == agent.SpanInterior {
		unit -= uint64(raw.Units)
	}
	return unit
}

func (h *Heap) start(object evidence.Addr) evidence.Addr { return h.unit(h.head(object)) }

// Span is the record of the span that holds an object, which may be changed.
func (h *Heap) Span(object evidence.Addr) *agent.RawSpan { return &h.spans[h.head(object)] }

// Small makes a span of slots of one size, and returns where the first slot
// is.
func (h *Heap) Small(slot, slots int) evidence.Addr {
	first := slot & -slot
	first = min(first, 4096)
	units := (first + slot*slots + agent.Unit - 1) / agent.Unit
	unit := h.units(units)
	h.spans[unit] = agent.RawSpan{Kind: agent.SpanSmall, Units: uint32(units), Slot: uint32(slot), First: uint32(first), Slots: uint32(slots),
		Carved: uint32(slots), Words: h.meta(8 * slots), Bitmap: h.meta((slots + 63) / 64 * 8)}
	start := h.unit(unit)
	h.canary(start, start+evidence.Addr(first), h.CanaryWord(start+evidence.Addr(first)))
	return start + evidence.Addr(first)
}

// Alloc hands out a slot of a span of Small.
func (h *Heap) Alloc(slot evidence.Addr, size int, by agent.Call, api agent.API) evidence.Addr {
	raw := h.Span(slot)
	if size+agent.MinCanary > int(raw.Slot) {
		panic("the object does not fit the slot")
	}
	h.canary(slot+evidence.Addr(size), slot+evidence.Addr(min(int(raw.Slot), (size+7)&^7+agent.MaxCanary)), h.CanaryWord(slot))
	h.SetWord(slot, word(uint64(size), by, agent.Live, api))
	return slot
}

func word(size uint64, by agent.Call, state agent.State, api agent.API) uint64 {
	return size | uint64(by.Site)<<agent.WordSite | uint64(by.Thread)<<agent.WordThread | uint64(state)<<agent.WordState | uint64(api)<<agent.WordAPI
}

// SetState changes the state in an object's word, and nothing else.
func (h *Heap) SetState(object evidence.Addr, state agent.State) {
	h.SetWord(object, h.Word(object)&^(3<<agent.WordState)|uint64(state)<<agent.WordState)
}

// Free frees a small object into the ring of a heap's class.
func (h *Heap) Free(object evidence.Addr, by agent.Call, heap, class int) {
	h.fill(object, uint64(h.Span(object).Slot))
	h.SetState(object, agent.Quarantined)
	h.Enter(object, by, heap, class)
}

// RingSize is how many entries the rings have room for.
const RingSize = 16

// Enter puts an entry into a ring.
func (h *Heap) Enter(object evidence.Addr, by agent.Call, heap, class int) {
	r := &h.Heaps[heap].Bins[class].Ring
	if r.Entries == 0 {
		r.Entries, r.Mask = h.meta(RingSize*16), RingSize-1
	}
	if r.Tail-r.Head == RingSize {
		panic("the ring is full")
	}
	entry, err := binary.Append(nil, binary.LittleEndian, agent.RawFreed{Object: uint64(object), Site: by.Site, Thread: by.Thread})
	if err != nil {
		panic(err)
	}
	h.Memory.Write(evidence.Addr(r.Entries+uint64(r.Tail&r.Mask)*16), entry)
	r.Tail++
}

// Release frees a small object and passes the quarantine by.
func (h *Heap) Release(object evidence.Addr) {
	h.fill(object, uint64(h.Span(object).Slot))
	h.SetState(object, agent.Reusable)
}

// fill writes the fill over so many bytes, or less.
func (h *Heap) fill(object evidence.Addr, n uint64) {
	n = min(n, uint64(h.Root.Options.FillBytes))
	w := agent.FillWord(h.Root.Objects.Start, uint64(object))
	for at := uint64(0); at < n; at += 8 {
		h.put64(uint64(object)+at, w)
	}
}

// Large makes a large object `offset` bytes after the start of its span, with
// `rest` bytes of canary after it, and if guarded an inaccessible page.
func (h *Heap) Large(offset, size, rest int, by agent.Call, guarded bool) evidence.Addr {
	length := offset + size + rest
	page := 0
	if guarded {
		page = pageSize
		if length%pageSize != 0 {
			panic("a guard page begins at a page")
		}
	}
	units := (length + page + agent.Unit - 1) / agent.Unit
	unit := h.units(units)
	start := h.unit(unit)
	object := start + evidence.Addr(offset)
	end := start + evidence.Addr(length)
	h.spans[unit] = agent.RawSpan{Kind: agent.SpanLarge, Units: uint32(units), Slots: 1, Carved: 1, Words: h.Root.Spans.Start + unit*128 + 104,
		Object: uint64(object), Size: uint64(size), End: uint64(end)}
	if guarded {
		h.spans[unit].Flags = agent.SpanGuarded
		h.Memory.Unmap(end, pageSize)
	}
	h.canary(object-evidence.Addr(min(offset, agent.LargeCanary)), object, h.CanaryWord(object))
	h.canary(object+evidence.Addr(size), object+evidence.Addr(size+min(rest, agent.LargeCanary)), h.CanaryWord(object))
	h.SetWord(object, word(0, by, agent.Live, agent.APIMalloc))
	return object
}

// FreeLarge frees a large object.
func (h *Heap) FreeLarge(object evidence.Addr, by agent.Call) {
	raw := h.Span(object)
	h.fill(object, agent.Filled(raw.Size, uint64(h.Root.Options.FillBytes)))
	h.SetState(object, agent.Quarantined)
	raw.Kind, raw.FreeSite, raw.FreeThread = agent.SpanFreed, by.Site, by.Thread
}

// Site adds a site with return addresses, innermost first.
func (h *Heap) Site(pcs ...uint64) uint32 {
	raw := agent.RawSite{Frames: uint32(len(pcs))}
	copy(raw.PC[:], pcs)
	return h.appendRecord(&h.Root.Sites, raw)
}

// Thread adds a thread.
func (h *Heap) Thread(tid int, ended bool) uint32 {
	raw := agent.RawThread{TID: uint32(tid), State: agent.ThreadRunning}
	if ended {
		raw.State = agent.ThreadEnded
	}
	return h.appendRecord(&h.Root.Threads, raw)
}

func (h *Heap) appendRecord(w *agent.RawWindow, raw any) (index uint32) {
	index = uint32(w.Used)
	h.put(w.Start+w.Used*uint64(binary.Size(raw)), raw)
	w.Used++
	w.Mapped = (w.Used*uint64(binary.Size(raw)) + pageSize - 1) &^ (pageSize - 1)
	return index
}

func (h *Heap) put(addr uint64, raw any) {
	p, err := binary.Append(nil, binary.LittleEndian, raw)
	if err != nil {
		panic(err)
	}
	h.Memory.Write(evidence.Addr(addr), p)
}

// Error adds evidence that the agent found.
func (h *Heap) Error(raw agent.RawError) {
	if n := uint64(h.Root.ErrorCount); n < agent.MaxErrors {
		h.put(h.Root.Errors+n*uint64(binary.Size(raw)), raw)
	}
	h.Root.ErrorCount++
}

// Finish writes the parts that are not in memory yet: the root, the heaps and the
// spans.
func (h *Heap) Finish() {
	for _, w := range []struct {
		*agent.RawWindow
		list any
		n    int
	}{{&h.Root.Heaps, h.Heaps, len(h.Heaps)}, {&h.Root.Spans, h.spans, len(h.spans)}} {
		h.put(w.Start, w.list)
		w.Used = uint64(w.n)
		w.Mapped = (uint64(binary.Size(w.list)) + pageSize - 1) &^ (pageSize - 1)
	}
	h.put(h.Root.Base, h.Root)
}

// Open finishes the heap and opens it.
func (h *Heap) Open() (*agent.Heap, error) {
	h.Finish()
	return agent.Open(h.Memory, 0)
}
