package jemalloc

import (
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
)

// The layout of struct edata_s (edata.h).
const (
	extentSize  = 128
	extentAlign = 128 // EDATA_ALIGNMENT

	offBits, offAddr, offSize, offBitmap = 0, 8, 16, 64

	slabBit    = 12
	stateShift = 17 // after arena_ind, slab, committed, pai, zeroed and guarded
	stateMask  = 7
	classShift = 20
	classMask  = 0xff
	freeShift  = 28
	freeMask   = 0x3ff

	bitmapWords = 8 // BITMAP_GROUPS_MAX for slabs of up to 512 objects
	mostObjects = bitmapWords * 64
)

// extentState is enum extent_state_e.
type extentState uint8

const (
	active extentState = iota
	dirty
	muzzy
	retained
	lastState = 5
)

// extent is a run of pages: a slab of small objects, one large object, or free.
type extent struct {
	// addr is where the object or the slab begins, size the length of its pages, in bytes.
	addr  evidence.Addr
	size  uint64
	slab  bool
	state extentState
	class int
	// free counts the free objects of a slab, bitmap has their bits set (bitmap.h, without a tree).
	free   int
	bitmap [bitmapWords]uint64
}

// base is its first page.
func (e *extent) base() evidence.Addr { return e.addr &^ (pageSize - 1) }

// end is the end of its last page.
func (e *extent) end() evidence.Addr { return e.base() + evidence.Addr(e.size) }

// contains reports whether an address is in its pages.
func (e *extent) contains(at evidence.Addr) bool { return at >= e.base() && at < e.end() }

// readExtent reads a struct edata_s.
func readExtent(m image.Memory, at evidence.Addr) (*extent, error) {
	var raw [extentSize]byte
	if at%extentAlign != 0 {
		return nil, fmt.Errorf("jemalloc: no extent can be at %v", at)
	}
	if _, err := m.ReadMemory(at, raw[:]); err != nil {
		return nil, fmt.Errorf("jemalloc: extent: %w", err)
	}
	le := binary.LittleEndian
	bits := le.Uint64(raw[offBits:])
	e := &extent{addr: evidence.Addr(le.Uint64(raw[offAddr:])), size: le.Uint64(raw[offSize:]) &^ (pageSize - 1),
		slab: bits>>slabBit&1 != 0, state: extentState(bits >> stateShift & stateMask),
		class: int(bits >> classShift & classMask), free: int(bits >> freeShift & freeMask)}
	for i := range e.bitmap {
		e.bitmap[i] = le.Uint64(raw[offBitmap+8*i:])
	}
	if e.size == 0 || e.addr == 0 || uint64(e.base())+e.size > 1<<addressBits || e.state > lastState {
		return nil, fmt.Errorf("jemalloc: the memory at %v is no extent", at)
	}
	return e, nil
}

// isFree reports whether the bit of an object of a slab is set.
func (e *extent) isFree(index uint64) bool { return e.bitmap[index/64]>>(index%64)&1 != 0 }
