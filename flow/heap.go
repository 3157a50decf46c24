package flow

import (
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/replay/record/eventlog"
)

// Object is a run of memory that the heap handed out, or that was mapped.
type Object struct {
	Addr evidence.Addr
	Size uint64
	// Made and Freed are the steps of the calls; Made is -1 if it was made before the trace, Freed if it was not freed in the trace.
	Made, Freed int
	// By and FreedBy are the functions called.
	By, FreedBy string
}

// heap are the objects in the order in which they were made.
type heap struct {
	objects []Object
	// ended tells of the objects when the trace ended; nil: it is not known. earlier are those of before the trace that were asked
	// for, by address.
	ended   func(evidence.Addr) (HeapObject, bool)
	earlier map[evidence.Addr]*Object
}

// earlierAt is the object that had an address when the trace ended, as one that was made before the trace; nil: none is known. freed: it
// had been freed by then.
func (h *heap) earlierAt(addr evidence.Addr) (o *Object, freed bool) {
	if h.ended == nil {
		return nil, false
	}
	e, ok := h.ended(addr)
	if !ok || addr < e.Addr || uint64(addr-e.Addr) >= max(e.Size, 1) {
		return nil, false
	}
	o = h.earlier[e.Addr]
	if o == nil {
		o = &Object{Addr: e.Addr, Size: e.Size, Made: -1, Freed: -1}
		if h.earlier == nil {
			h.earlier = map[evidence.Addr]*Object{}
		}
		h.earlier[e.Addr] = o
	}
	return o, e.Freed
}

// before is the object of before the trace that has an address; nil: none is known, or it was freed before the trace as well.
func (h *heap) before(addr evidence.Addr) *Object {
	o, freed := h.earlierAt(addr)
	if o == nil || freed && o.Freed < 0 {
		return nil
	}
	if slices.ContainsFunc(h.objects, func(x Object) bool { return !x.Mapped() && x.Addr < o.end() && o.Addr < x.end() }) {
		return nil // that one was made in the trace
	}
	return o
}

// note takes a call of the recording library, if it is one of the heap's. The arguments are the registers
// at the call, the last instruction before it.
func (h *heap) note(t *Trace, n int) {
	s := t.steps.at(n)
	name := t.calls[s.called]
	if s.called == 0 || s.previous < 0 || name == "" {
		return
	}
	a := &t.steps.at(int(s.previous)).general
	result := evidence.Addr(s.general[x86.RAX])
	first, second := a[x86.RDI], a[x86.RSI]
	switch name {
	case "malloc", "valloc", "pvalloc", agent.APINew.String(), agent.APINewArray.String():
		h.made(t, n, result, first, name)
	case "calloc":
		h.made(t, n, result, first*second, name)
		t.setRange(n, result, first*second, Constant, name, 0)
	case "memalign", "aligned_alloc":
		h.made(t, n, result, second, name)
	case "realloc", "reallocarray":
		size := second
		if name == "reallocarray" {
			size *= a[x86.RDX]
		}
		if result == 0 && size > 0 {
			break // it failed, and the old object is still there
		}
		old := h.at(evidence.Addr(first), n)
		if old == nil && result != evidence.Addr(first) {
			old, _ = h.earlierAt(evidence.Addr(first)) // in another place its size is still that of before
		}
		kept := uint64(0)
		if old != nil {
			kept = min(old.Size, size)
		}
		if old != nil && old.Addr == result { // it grew or shrank in place, and pointers to it stay good
			t.setRange(n, result+evidence.Addr(kept), size-kept, Allocated, name, 0)
			old.Size = max(old.Size, size)
			break
		}
		h.freed(t, n, evidence.Addr(first), name)
		h.made(t, n, result, size, name)
		switch {
		case kept > 0:
			t.setRange(n, result, kept, Copied, name, first)
		case first != 0 && old == nil: // how much it had is not known
			t.setRange(n, result, size, Unknown, name, 0)
		}
	case "free", "cfree", agent.APINew.Release(), agent.APINewArray.Release():
		h.freed(t, n, evidence.Addr(first), name)
	}
}

func (h *heap) made(t *Trace, n int, addr evidence.Addr, size uint64, name string) {
	if addr == 0 || size > 1<<47 {
		return
	}
	h.objects = append(h.objects, Object{Addr: addr, Size: size, Made: n, Freed: -1, By: name})
	t.setRange(n, addr, size, Allocated, name, 0)
}

func (h *heap) freed(t *Trace, n int, addr evidence.Addr, name string) {
	o := h.at(addr, n)
	if o == nil {
		if e, freed := h.earlierAt(addr); freed { // else another object is there at the end
			o = e
		}
	}
	if o != nil && o.Addr == addr {
		o.Freed, o.FreedBy = n, name
		t.setRange(n, addr, o.Size, Freed, name, 0)
	}
}

// mapped notes that a system call mapped or unmapped memory. What is only unmapped in part is no object any more.
func (h *heap) mapped(n int, m eventlog.MemoryChange) {
	if m.Grown > 0 {
		h.grew(m)
		return
	}
	if m.Whole {
		o := h.last(func(o *Object) bool { return o.Mapped() && o.Freed < 0 && o.Addr == m.Addr })
		if o == nil {
			return // it was made before the trace
		}
		m.Size = o.Size
	}
	end := m.Addr + evidence.Addr(m.Size)
	h.objects = slices.DeleteFunc(h.objects, func(o Object) bool {
		return o.mappedAt(m.Addr, end) && (m.Addr > o.Addr || end < o.end())
	})
	for i := range h.objects {
		if o := &h.objects[i]; o.mappedAt(m.Addr, end) {
			o.Freed, o.FreedBy = n, m.Call
		}
	}
	if !m.Gone {
		h.objects = append(h.objects, Object{Addr: m.Addr, Size: m.Size, Made: n, Freed: -1, By: m.Call})
	}
}

// grew notes that a mapping became larger in its place. Pointers to it stay good.
func (h *heap) grew(m eventlog.MemoryChange) {
	if o := h.last(func(o *Object) bool { return o.Mapped() && o.Freed < 0 && o.Addr == m.Addr && o.Size == m.Size }); o != nil {
		o.Size = m.Grown
	}
}

// mappedAt reports whether the object is a mapping that is still there and has a part of the memory from start to end.
func (o *Object) mappedAt(start, end evidence.Addr) bool {
	return o.Mapped() && o.Freed < 0 && o.Addr < end && start < o.end()
}

func (o *Object) end() evidence.Addr { return o.Addr + evidence.Addr(o.Size) }

// at is the object that was in use at an address when step n began; nil: there was none.
func (h *heap) at(addr evidence.Addr, n int) *Object {
	return h.last(func(o *Object) bool { return o.has(addr, n) && (o.Freed < 0 || o.Freed >= n) })
}

// last is the last object made of those that are wanted; nil: there is none.
func (h *heap) last(wanted func(*Object) bool) *Object {
	for i := range slices.Backward(h.objects) {
		if o := &h.objects[i]; wanted(o) {
			return o
		}
	}
	return nil
}

// has reports whether an address is in the object, and it was made before step n.
func (o *Object) has(addr evidence.Addr, n int) bool {
	return o.Made < n && addr >= o.Addr && addr < o.Addr+evidence.Addr(max(o.Size, 1))
}

// setRange notes that a call of the heap decided the content of memory.
func (t *Trace) setRange(n int, addr evidence.Addr, size uint64, kind Kind, call string, from uint64) {
	if size > 0 {
		t.ranges = append(t.ranges, writtenRange{at: int32(n), addr: uint64(addr), size: size, kind: kind, call: call, from: from})
	}
}

// ObjectAt is the last object that was made at an address before step n, in use or freed; nil: none is known.
func (t *Trace) ObjectAt(addr evidence.Addr, n int) *Object {
	if o := t.heap.last(func(o *Object) bool { return o.has(addr, n) }); o != nil {
		return o
	}
	return t.heap.before(addr)
}

// ObjectMade is the object that step n made; nil: none.
func (t *Trace) ObjectMade(n int) *Object {
	return t.heap.last(func(o *Object) bool { return o.Made == n })
}

// MadeBefore is the last object that a step before step n made; nil: none is known.
func (t *Trace) MadeBefore(n int) *Object {
	return t.heap.last(func(o *Object) bool { return o.Made >= 0 && o.Made < n })
}

// Mapped reports whether a system call mapped the object, and the heap did not make it.
func (o *Object) Mapped() bool {
	switch o.By {
	case "mmap", "mremap", "shmat":
		return true
	}
	return false
}

// FreedRange is the smallest range that has all memory that the heap freed. It is empty if nothing was freed.
func (t *Trace) FreedRange() (start, end evidence.Addr) {
	add := func(o *Object) {
		switch {
		case o.Freed < 0 || o.Mapped():
		case end == 0:
			start, end = o.Addr, o.end()
		default:
			start, end = min(start, o.Addr), max(end, o.end())
		}
	}
	for i := range t.heap.objects {
		add(&t.heap.objects[i])
	}
	for _, o := range t.heap.earlier {
		add(o)
	}
	return start, end
}
