package tcmalloc

import (
	"errors"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/allocator"
)

// span is a run of pages (span.h, struct Span).
type span struct {
	// at is the address of the structure. start is the first page's number, length counts the pages.
	at            evidence.Addr
	start, length uint64
	next, prev    evidence.Addr
	// objects is the first free object, used counts the others.
	objects evidence.Addr
	used    int
	class   int
	// free: the span is in a list of free pages.
	free bool
}

// The size of struct Span, and the offset of its link.
const (
	spanSize  = 48
	offNext   = 16
	mostShift = 48 - pageShift // bits of a page's number
)

// readSpan reads a struct Span.
func readSpan(m image.Memory, at evidence.Addr) (*span, error) {
	raw, err := image.Struct[[6]uint64](m, at)
	if err != nil {
		return nil, err
	}
	return &span{at: at, start: raw[0], length: raw[1], next: evidence.Addr(raw[2]), prev: evidence.Addr(raw[3]),
		objects: evidence.Addr(raw[4]), used: int(raw[5] & 0xffff), class: int(raw[5] >> 16 & 0xff), free: raw[5]>>24&3 != 0}, nil
}

// possible reports whether the pages can be those of a program.
func (s *span) possible() bool {
	return s.start > 0 && s.length > 0 && s.start>>mostShift == 0 && s.length>>mostShift == 0
}

// base is the address of its memory.
func (s *span) base() evidence.Addr { return evidence.Addr(s.start << pageShift) }

// contains reports whether a page is in the span.
func (s *span) contains(page uint64) bool { return page >= s.start && page-s.start < s.length }

// pageMap is the two-level map from pages to spans (TCMalloc_PageMap2<35>).
type pageMap struct {
	memory image.Memory
	root   evidence.Addr
}

const (
	leafBits   = 18
	leafLength = 1 << leafBits
	rootLength = 1 << 17
	rootBytes  = rootLength * allocator.Word
	leafBytes  = leafLength * allocator.Word
)

// get returns the address of the span that the map has for a page, 0 if it has none.
func (m *pageMap) get(page uint64) (evidence.Addr, error) {
	if page>>mostShift != 0 {
		return 0, nil
	}
	leaf, err := image.Uint64(m.memory, m.root+evidence.Addr(page>>leafBits)*allocator.Word)
	if err != nil || leaf == 0 {
		return 0, err
	}
	at, err := image.Uint64(m.memory, evidence.Addr(leaf)+evidence.Addr(page%leafLength)*allocator.Word)
	return evidence.Addr(at), err
}

// whole returns the span at an address if the map has it for its first and its last page, as for every
// span that exists (page_heap.h, RecordSpan). Inner pages may have spans that no longer exist.
func (m *pageMap) whole(at evidence.Addr) (*span, bool) {
	if at%allocator.Word != 0 {
		return nil, false
	}
	s, err := readSpan(m.memory, at)
	if err != nil || !s.possible() {
		return nil, false
	}
	for _, page := range []uint64{s.start, s.start + s.length - 1} {
		if x, err := m.get(page); err != nil || x != at {
			return nil, false
		}
	}
	return s, true
}

// mostLeavesBack bounds the search for the first page of a span: a leaf maps 2 GB. mostStale bounds the
// spans on the way that no longer exist.
const (
	mostLeavesBack = 128
	mostStale      = 1 << 16
)

// errNoSpan is for an address that is in no span.
var errNoSpan = errors.New("tcmalloc: no span")

// spanOf returns the span that the map has for a page: that of small objects, or the one that begins or
// ends there.
func (m *pageMap) spanOf(page uint64) (*span, error) {
	at, err := m.get(page)
	if err != nil {
		return nil, err
	}
	if s, ok := m.whole(at); ok && s.contains(page) {
		return s, nil
	}
	return nil, errNoSpan
}

// spanAt returns the span that a page is in. Of large spans the map has the first page and the last one: before an inner
// page, the next whole span is the one that it is in.
func (m *pageMap) spanAt(page uint64) (*span, error) {
	if page>>mostShift != 0 {
		return nil, errNoSpan
	}
	var found *span
	stale := 0
	key, count := page>>leafBits, int(page%leafLength)+1
	for range mostLeavesBack {
		leaf, err := image.Uint64(m.memory, m.root+evidence.Addr(key)*allocator.Word)
		if err != nil {
			return nil, err
		}
		if leaf != 0 {
			_, err = allocator.LastWord(m.memory, evidence.Addr(leaf), count, func(at uint64, i int) bool {
				s, ok := m.whole(evidence.Addr(at))
				if ok && s.contains(key<<leafBits|uint64(i)) {
					found = s
				} else {
					stale++
				}
				return found != nil || stale > mostStale
			})
		}
		switch {
		case err != nil:
			return nil, err
		case found != nil && found.contains(page):
			return found, nil
		case found != nil || stale > mostStale || key == 0:
			return nil, errNoSpan
		}
		key, count = key-1, leafLength
	}
	return nil, errNoSpan
}
