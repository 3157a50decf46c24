package agent

import (
	"fmt"

	"diagnose/evidence"
)

// Reader reads parts of many slots. It has buffers and is for one goroutine.
type Reader struct {
	heap   *Heap
	buffer []byte
	spans  map[uint64]*Span // by unit
}

// NewReader returns a reader of the heap's slots.
func (h *Heap) NewReader() *Reader {
	return &Reader{heap: h, buffer: make([]byte, BatchMemory), spans: map[uint64]*Span{}}
}

// denseSlot is the size up to which slots are cheaper to read together than
// one by one; page is what memory is readable by.
const (
	denseSlot = 1024
	page      = 4096
)

// Slots reads one range of every slot of a batch of small objects and hands
// the bytes to visit, which must not keep them. choose returns the range in
// slot i; empty passes it over. Those that could not be read are counted, and
// err says why of the first.
func (r *Reader) Slots(b *Batch, choose func(i int) Range, visit func(i int, at evidence.Addr, p []byte)) (unread int, err error) {
	if b.Span.SlotSize() > denseSlot {
		return r.oneByOne(b, choose, visit)
	}
	start, end := b.Memory()
	next := 0
	for at := start; at < end; {
		n, readErr := r.heap.source.memory.ReadMemory(at, r.buffer[:end-at])
		if readErr == nil && n < int(end-at) {
			readErr = fmt.Errorf("only %d of %d bytes could be read", n, end-at)
		}
		here := Range{at, at + evidence.Addr(n)}
		if readErr != nil && err == nil {
			err = fmt.Errorf("agent: slots at %v: %w", at, readErr)
		}
		at = (here.End + page) &^ (page - 1)
		if readErr == nil {
			at = end
		}
		var missed int
		next, missed = r.hand(b, next, here, at, choose, visit)
		unread += missed
	}
	if unread == 0 {
		err = nil
	}
	return unread, err
}

// hand hands out the ranges from slot next on of the data read, which is
// here, up to the first that begins at or after resume, where reading continues.
// So none begins before the next read.
func (r *Reader) hand(b *Batch, next int, here Range, resume evidence.Addr, choose func(i int) Range, visit func(i int, at evidence.Addr, p []byte)) (int, int) {
	unread := 0
	for ; next < b.Len(); next++ {
		part := choose(next)
		switch {
		case part.Len() == 0:
		case part.Start >= resume:
			return next, unread
		case part.End > here.End:
			unread++
		default:
			visit(next, part.Start, r.buffer[part.Start-here.Start:part.End-here.Start])
		}
	}
	return next, unread
}

func (r *Reader) oneByOne(b *Batch, choose func(i int) Range, visit func(i int, at evidence.Addr, p []byte)) (unread int, err error) {
	for i := range b.Len() {
		part := choose(i)
		if part.Len() == 0 {
			continue
		}
		p, readErr := r.Read(part)
		if readErr != nil {
			unread++
			if err == nil {
				err = readErr
			}
			continue
		}
		visit(i, part.Start, p)
	}
	return unread, err
}

// Read reads a range of at most BatchMemory bytes. What it returns is valid up
// to the next call.
func (r *Reader) Read(part Range) ([]byte, error) {
	p := r.buffer[:part.Len()]
	return p, r.heap.source.read("slot", uint64(part.Start), p)
}

// maxSpans bounds the spans that a reader keeps.
const maxSpans = 4096

// Lookup is Heap.Lookup, and cheap for objects of the same spans.
func (r *Reader) Lookup(addr evidence.Addr) (o Object, found bool, err error) {
	if !r.heap.InObjects(addr) {
		return Object{}, false, nil
	}
	unit := r.heap.root.unitOf(addr)
	s, ok := r.spans[unit]
	if !ok {
		if s, err = r.heap.spans.spanOf(unit); err != nil {
			return Object{}, false, err
		}
		if len(r.spans) >= maxSpans {
			clear(r.spans)
		}
		r.spans[unit] = s
	}
	if s == nil {
		return Object{}, false, nil
	}
	slot, ok := s.slotOf(addr)
	if !ok {
		return Object{}, false, nil
	}
	o, err = r.heap.spans.objectAt(s, slot)
	return o, err == nil, err
}
