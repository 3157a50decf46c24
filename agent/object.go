package agent

import "diagnose/evidence"

// State is what a slot holds.
type State uint8

// The states of a slot.
const (
	Fresh       State = 0 // never handed out
	Live        State = 1 // the program's
	Quarantined State = 2 // freed, and kept from reuse
	Reusable    State = 3 // freed, and may be reused any time
)

// String names the state.
func (s State) String() string {
	return [...]string{"fresh", "live", "quarantined", "reusable"}[s&3]
}

// Evidence is the state in a report; "" for a fresh slot, which is no object.
func (s State) Evidence() evidence.HeapState {
	return [...]evidence.HeapState{"", evidence.HeapLive, evidence.HeapQuarantined, evidence.HeapFreed}[s&3]
}

// API is the interface that an object was allocated or freed by.
type API uint8

// The interfaces.
const (
	APIMalloc   API = 0 // malloc and its kin, free
	APINew      API = 1 // operator new, operator delete
	APINewArray API = 2 // operator new[], operator delete[]
)

// String names the allocating side of the interface.
func (a API) String() string {
	switch a {
	case APIMalloc:
		return "malloc"
	case APINew:
		return "operator new"
	case APINewArray:
		return "operator new[]"
	}
	return "an unknown interface"
}

// Release names the freeing side of the interface.
func (a API) Release() string {
	switch a {
	case APIMalloc:
		return "free"
	case APINew:
		return "operator delete"
	case APINewArray:
		return "operator delete[]"
	}
	return "an unknown interface"
}

// Call is who allocated or freed: the number of a site (Heap.Site) and of a
// thread (Heap.Thread), each 0 when it is not known.
type Call struct {
	Site, Thread uint32
}

// Known reports whether anything is known of the call.
func (c Call) Known() bool { return c.Site != 0 || c.Thread != 0 }

// Object is a slot of the heap and what it holds. It is a value: comparable,
// and valid without the heap it came from.
type Object struct {
	Addr evidence.Addr
	// Size is what the program asked for; 0 for a fresh slot.
	Size uint64
	// Slot and SlotEnd bound the memory set aside for it.
	Slot, SlotEnd evidence.Addr
	State         State
	API           API
	// Large objects have a span of their own, and canaries on both sides.
	Large bool
	// Guarded: an inaccessible page is at SlotEnd.
	Guarded bool
	// Reported: the agent found its guard or its fill damaged while the
	// program ran.
	Reported  bool
	Allocated Call
	// Freed is of the last free. For small objects it is found by Heap.Frees
	// only, and only while they are in quarantine.
	Freed Call
}

// End is the address after its last byte.
func (o *Object) End() evidence.Addr { return o.Addr + evidence.Addr(o.Size) }

// Contains reports whether addr is one of its bytes.
func (o *Object) Contains(addr evidence.Addr) bool { return addr >= o.Addr && addr < o.End() }
