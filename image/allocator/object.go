package allocator

import (
	"diagnose/evidence"
	"diagnose/image"
)

// Object is a piece of memory that an allocator hands out, or a run of free pages.
type Object struct {
	// Start is the address that malloc returned, or would return. Size is that of the size class, in
	// bytes: the program asked for as much or less.
	Start evidence.Addr
	Size  uint64
	// State is ChunkInUse, ChunkFree or ChunkUnknown.
	State evidence.ChunkState
	// List is where a free object is kept, Thread the index of the thread whose cache that is, -1
	// if it is none's or the thread is not known.
	List   evidence.FreeList
	Thread int
	// Linked: the state follows from links in freed objects, which a program that writes to those may have
	// replaced by others that are possible, too.
	Linked bool
	// Own: the allocator keeps structures of its own in it.
	Own bool
	// Pages: these are free pages. Objects that were in them are not known.
	Pages bool
}

// End is the end of the object.
func (o *Object) End() evidence.Addr { return o.Start + evidence.Addr(o.Size) }

// Heap is the heap of an allocator in a dead or stopped process.
type Heap interface {
	// Name is the allocator's.
	Name() evidence.Allocator
	// Module is the object that has its code and data.
	Module() *image.Module
	// At returns the object that an address is in; false: the heap has none there. The memory
	// between two objects, and after the last one of a page, belongs to none.
	At(evidence.Addr) (Object, bool)
}
