package agent

import (
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
)

const (
	spanSize   = 128
	spanWord   = 104 // a large object's, in its span's record
	siteSize   = 104
	threadSize = 32
	freedSize  = 16
)

// Thread is a thread that used the heap.
type Thread struct {
	TID   int
	Ended bool
	// Parent: it ran in the process that forked this one.
	Parent bool
	// Heap is the index of its heap.
	Heap int
	// StackLow and StackHigh bound its stack; 0 when not known.
	StackLow, StackHigh evidence.Addr
}

// Threads is how many threads used the heap; they are numbered from 1.
func (h *Heap) Threads() int { return max(0, int(h.root.Threads.Used)-1) }

// Thread reads thread number n, as Call.Thread has it.
func (h *Heap) Thread(n uint32) (Thread, error) {
	if n == 0 || uint64(n) >= h.root.Threads.Used {
		return Thread{}, fmt.Errorf("agent: there is no thread %d", n)
	}
	raw, err := readRaw[RawThread](h.source, fmt.Sprintf("thread %d", n), h.root.Threads.Start+uint64(n)*threadSize)
	if err != nil {
		return Thread{}, err
	}
	return Thread{TID: int(raw.TID), Ended: raw.State == ThreadEnded, Parent: raw.State == ThreadParent, Heap: int(raw.Heap),
		StackLow: evidence.Addr(raw.StackLow), StackHigh: evidence.Addr(raw.StackHigh)}, nil
}

// Site returns the return addresses of site number n, innermost first: the
// first one returns to the caller of malloc or free.
func (h *Heap) Site(n uint32) ([]evidence.Addr, error) {
	if n == 0 || uint64(n) >= h.root.Sites.Used {
		return nil, fmt.Errorf("agent: there is no site %d", n)
	}
	raw, err := readRaw[RawSite](h.source, fmt.Sprintf("site %d", n), h.root.Sites.Start+uint64(n)*siteSize)
	if err != nil {
		return nil, err
	}
	return addresses(raw.PC[:], raw.Frames), nil
}

func addresses(pc []uint64, n uint32) []evidence.Addr {
	list := make([]evidence.Addr, min(int(n), len(pc)))
	for i := range list {
		list[i] = evidence.Addr(pc[i])
	}
	return list
}

// Kinds of Error.
const (
	ErrorNone         = 0
	ErrorOverflow     = 1
	ErrorUnderflow    = 2
	ErrorUseAfterFree = 3
	ErrorDoubleFree   = 4
	ErrorFreeMiddle   = 5
	ErrorFreeWild     = 6
	ErrorFreeStack    = 7
	ErrorFreeGlobal   = 8
	ErrorFreeForeign  = 9
	ErrorMismatch     = 10
)

// Values of Error.When.
const (
	AtFree     = 1
	AtRealloc  = 2
	AtEviction = 3
	AtCheck    = 4
	AtExit     = 5
	AtSize     = 6
)

// Error is evidence that the agent found while the program ran.
type Error struct {
	Kind, When int
	// Thread is the number of the thread that found it, TID the kernel's id.
	Thread uint32
	TID    int
	// Pointer is the argument of the call; 0 for a check.
	Pointer evidence.Addr
	// Object is the object concerned as it was then; nil when there is none.
	Object *Object
	// Damage and DamageEnd bound the damaged bytes, Bytes are their values,
	// as far as it was kept.
	Damage, DamageEnd evidence.Addr
	Bytes             []byte
	// Guard is the word that the damaged guard was made of; 0 for another kind.
	Guard uint64
	// API is the interface of the call.
	API API
	// Stack has the return addresses of the call, innermost first.
	Stack []evidence.Addr
	// Fatal: the agent ended the process because of it.
	Fatal bool
}

// Errors reads what the agent found, in the order of finding, and how many
// more there were than it kept.
func (h *Heap) Errors() (list []Error, more int, err error) {
	count := int(h.root.ErrorCount)
	kept := min(count, MaxErrors)
	if kept == 0 {
		return nil, 0, nil
	}
	size := uint64(binary.Size(RawError{}))
	if h.root.Errors < h.root.Base || h.root.Errors+MaxErrors*size > h.root.Heaps.Start {
		return nil, 0, fmt.Errorf("agent: implausible address %#x of the errors", h.root.Errors)
	}
	for i := range kept {
		raw, err := readRaw[RawError](h.source, fmt.Sprintf("error %d", i), h.root.Errors+uint64(i)*size)
		if err != nil {
			return list, count - i, err
		}
		list = append(list, raw.decode())
	}
	return list, count - kept, nil
}

func (raw *RawError) decode() Error {
	e := Error{
		Kind: int(raw.Kind), When: int(raw.When), Thread: raw.Thread, TID: int(raw.TID),
		Pointer: evidence.Addr(raw.Pointer), Damage: evidence.Addr(raw.Damage), DamageEnd: evidence.Addr(raw.DamageEnd),
		Bytes: raw.Bytes[:min(int(raw.BytesLength), len(raw.Bytes))], API: API(raw.API), Guard: raw.Guard,
		Stack: addresses(raw.PC[:], raw.Frames), Fatal: raw.Fatal != 0,
	}
	if raw.WordValid != 0 {
		e.Object = &Object{
			Addr: evidence.Addr(raw.Object), Size: raw.Size, Slot: evidence.Addr(raw.Slot), SlotEnd: evidence.Addr(raw.SlotEnd),
			State: State(raw.Word >> WordState & 3), API: API(raw.Word >> WordAPI & 3), Large: raw.SlotEnd-raw.Slot > SmallMax,
			Allocated: callOf(raw.Word), Freed: Call{Site: raw.FreeSite, Thread: raw.FreeThread},
		}
	}
	return e
}
