package jemalloc

import (
	"encoding/binary"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/allocator"
)

// Bounds of the search for the tree's root.
const (
	// mostLeaves bounds the places that are looked at because they may be leaves, nearly all of which show at once
	// that they are none, and mostElements the elements of a leaf that are followed.
	mostLeaves   = 1 << 20
	mostElements = 64
	// leastElements is how many elements a leaf must have, all of which lead to extents that lead back: the
	// pages of a slab, its own bookkeeping, and what else a program has that called malloc.
	leastElements = 2
)

// search looks for the root of the tree in the data of a module: a word that leads to a leaf
// whose elements lead to extents that have the address that the place in the leaf stands for. That
// address also tells which word of the root this one is.
type search struct {
	memory   image.Memory
	writable func(start evidence.Addr, size uint64) bool
	classes  classes
	buffer   []byte
}

// root returns the root of the only tree; false: there is none, or several places may be it.
func (s *search) root(regions []allocator.Region) (evidence.Addr, bool) {
	found, seen := map[evidence.Addr]bool{}, map[evidence.Addr]bool{}
	for i := range regions {
		r := &regions[i]
		for off := 0; off+allocator.Word <= len(r.Data); off += allocator.Word {
			leaf := evidence.Addr(r.Word(off))
			if leaf == 0 || leaf%64 != 0 || !leaf.Canonical() || seen[leaf] || !s.writable(leaf, leafBytes) {
				continue
			}
			key, ok := s.key(leaf)
			if !ok {
				if seen[leaf] = true; len(seen) > mostLeaves {
					return 0, false
				}
				continue
			}
			root := r.Start + evidence.Addr(off) - key*allocator.Word
			if root >= r.Start && root+leafBytes <= r.End() {
				found[root] = true
			}
		}
	}
	if len(found) != 1 {
		return 0, false
	}
	for root := range found {
		return root, true
	}
	return 0, false
}

// key returns the high bits of the addresses that a leaf maps; false: it is none.
func (s *search) key(leaf evidence.Addr) (evidence.Addr, bool) {
	const first, most = 4 << 10, 64 << 10
	if s.buffer == nil {
		s.buffer = make([]byte, most)
	}
	var key evidence.Addr
	followed := 0
	for start, piece := 0, first; start < leafBytes; start, piece = start+piece, min(most, leafBytes-start-piece) {
		b := s.buffer[:piece]
		if _, err := s.memory.ReadMemory(leaf+evidence.Addr(start), b); err != nil {
			return 0, false
		}
		for i := 0; i < piece; i += allocator.Word {
			e := element(binary.LittleEndian.Uint64(b[i:]))
			if e == 0 || e.empty() && e.class() == s.classes.none {
				continue
			}
			if e.empty() || !e.plausible() {
				return 0, false
			}
			if followed == mostElements {
				continue
			}
			k, ok := s.follow(e, evidence.Addr((start+i)/allocator.Word))
			if !ok || followed > 0 && k != key {
				return 0, false
			}
			key = k
			followed++
		}
	}
	return key, followed >= leastElements
}

// follow reads the extent of the element of a leaf at an index, and returns the high bits of its
// address. The element must be one of the extent's pages.
func (s *search) follow(e element, index evidence.Addr) (evidence.Addr, bool) {
	x, err := readExtent(s.memory, e.extent())
	if err != nil || !e.agrees(x, &s.classes) || x.state == active && !x.fits(&s.classes) {
		return 0, false
	}
	for _, page := range []evidence.Addr{x.base(), x.end() - pageSize} {
		if page>>pageShift&levelMask == index {
			return page >> leafReach, true
		}
	}
	key := (x.base() >> leafReach) // an inner page of a slab
	page := key<<leafReach | index<<pageShift
	if page < x.base() {
		key++
		page += 1 << leafReach
	}
	return key, x.slab && x.contains(page)
}

// fits reports whether the size of an extent in use is right for its class: a slab is filled by whole
// objects and counts its free ones, a large object is in its pages.
func (e *extent) fits(c *classes) bool {
	if e.class >= len(c.sizes) {
		return false
	}
	size := c.sizes[e.class]
	if !e.slab {
		return uint64(e.addr-e.base())+size <= e.size
	}
	count := e.size / size
	if count == 0 || count > mostObjects || e.addr != e.base() || e.class >= c.bins {
		return false
	}
	free := 0
	for i := range count {
		if e.isFree(i) {
			free++
		}
	}
	return free == e.free
}
