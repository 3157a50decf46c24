package jemalloc

import (
	"errors"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/allocator"
)

// The radix tree from pages to extents (rtree.h): two levels of 18 bits each.
const (
	addressBits = 48
	levelBits   = 18
	levelLength = 1 << levelBits
	levelMask   = levelLength - 1
	leafBytes   = levelLength * allocator.Word
	leafReach   = levelBits + pageShift // the bits of an address that a leaf maps
)

// element is an element of a leaf, in the compact form: the class in the 16 high bits, the address of
// the extent, its state, whether it is a head, and whether it is a slab.
type element uint64

func (e element) extent() evidence.Addr {
	return evidence.Addr(uint64(e) << (64 - addressBits) >> (64 - addressBits) &^ (extentAlign - 1))
}
func (e element) slab() bool         { return e&1 != 0 }
func (e element) state() extentState { return extentState(e >> 2 & stateMask) }
func (e element) class() int         { return int(e >> addressBits) }

// empty reports whether the page is in no extent: the element was never set, or it was cleared.
func (e element) empty() bool { return e.extent() == 0 }

// plausible reports whether an element that is not empty has the form of one.
func (e element) plausible() bool {
	const unused = 3 << 5
	return e&unused == 0 && e.state() <= lastState && e.class() <= classMask && e.extent()>>47 == 0
}

// agrees reports whether an element is one of an extent. That of the last page of a large object has no
// class (emap.c, emap_remap).
func (e element) agrees(x *extent, c *classes) bool {
	if x.state != active {
		return x.state == e.state()
	}
	return e.state() == active && e.slab() == x.slab && (e.class() == x.class || !x.slab && e.class() == c.none)
}

// tree is the radix tree of a process.
type tree struct {
	classes *classes
	memory  image.Memory
	root    evidence.Addr
}

// element returns the element of a page, an empty one where the tree has none.
func (t *tree) element(at evidence.Addr) (element, error) {
	leaf, err := t.leaf(at)
	if leaf == 0 || err != nil {
		return 0, err
	}
	raw, err := image.Uint64(t.memory, leaf+evidence.Addr(at>>pageShift&levelMask)*allocator.Word)
	return element(raw), err
}

// leaf is the leaf for an address, 0 if there is none.
func (t *tree) leaf(at evidence.Addr) (evidence.Addr, error) {
	leaf, err := image.Uint64(t.memory, t.root+evidence.Addr(at>>leafReach&levelMask)*allocator.Word)
	return evidence.Addr(leaf), err
}

// errNoExtent is for an address that is in no extent.
var errNoExtent = errors.New("jemalloc: no extent")

// extentAt returns the extent that an address is in. Of extents that are no slabs the tree has the first
// and the last page only: before an address inside, the next element is that of the first page.
func (t *tree) extentAt(at evidence.Addr) (*extent, error) {
	e, err := t.element(at)
	if err != nil {
		return nil, err
	}
	if e.empty() {
		if e, err = t.before(at); err != nil {
			return nil, err
		}
	}
	return t.read(e, at)
}

// extentOf returns the extent that the tree has for the page of an address: that of a slab, or of what
// begins or ends there.
func (t *tree) extentOf(at evidence.Addr) (*extent, error) {
	e, err := t.element(at)
	if err != nil {
		return nil, err
	}
	return t.read(e, at)
}

// read reads the extent of an element, which must agree with it and contain the address.
func (t *tree) read(e element, at evidence.Addr) (*extent, error) {
	if e.empty() || !e.plausible() {
		return nil, errNoExtent
	}
	x, err := readExtent(t.memory, e.extent())
	if err != nil {
		return nil, err
	}
	if !x.contains(at) || !e.agrees(x, t.classes) {
		return nil, errNoExtent
	}
	return x, nil
}

// mostLeavesBack bounds the search for the first page of an extent: a leaf maps 1 GB.
const mostLeavesBack = 256

// before is the last element before the page of an address.
func (t *tree) before(at evidence.Addr) (element, error) {
	index := int(at >> pageShift & levelMask)
	key := at >> leafReach
	for range mostLeavesBack {
		leaf, err := t.leaf(key << leafReach)
		if err != nil {
			return 0, err
		}
		if leaf != 0 {
			word, err := allocator.LastWord(t.memory, leaf, index, func(w uint64, _ int) bool { return !element(w).empty() })
			if word != 0 || err != nil {
				return element(word), err
			}
		}
		if key == 0 {
			break
		}
		key, index = key-1, levelLength
	}
	return 0, errNoExtent
}
