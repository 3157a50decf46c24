package evidence

import (
	"errors"
	"fmt"
)

// HeapState says whether an object of the heap is still the program's.
type HeapState string

// The states of a heap object.
const (
	HeapLive        HeapState = "live"
	HeapQuarantined HeapState = "quarantined" // freed, and kept from reuse
	HeapFreed       HeapState = "freed"       // freed, and may be reused any time
)

// HeapThread is the thread that allocated or freed an object. It may have
// ended long before the failure.
type HeapThread struct {
	// Ordinal counts the threads in the order of their first allocation, from
	// 1; TID is the kernel's id. Ended says that it is gone, Parent that it ran
	// in the process that forked this one.
	Ordinal int  `json:"ordinal"`
	TID     int  `json:"tid"`
	Ended   bool `json:"ended,omitempty"`
	Parent  bool `json:"parent,omitempty"`
	// Ref is the thread in this process; nil for one that is not in it.
	Ref *ThreadRef `json:"thread,omitempty"`
}

// Label is what people call the thread.
func (t HeapThread) Label() string {
	switch {
	case t.Ref != nil:
		return t.Ref.Label()
	case t.Ended:
		return fmt.Sprintf("a thread that ended (LWP %d)", t.TID)
	case t.Parent:
		return fmt.Sprintf("a thread of the parent process (LWP %d)", t.TID)
	}
	return fmt.Sprintf("LWP %d", t.TID)
}

// HeapCall is the call that allocated or freed an object.
type HeapCall struct {
	// Thread made the call; nil when that is not known any more.
	Thread *HeapThread `json:"thread,omitempty"`
	// Stack begins with the caller of malloc or free and has as many frames as
	// the agent was told to keep.
	Stack Stack `json:"stack"`
	// Site is the innermost place of the program's own code in Stack, its
	// wrappers of malloc and free passed over; nil when there is none.
	Site *Site `json:"site,omitempty"`
}

// HeapObject is an object of the heap as the agent recorded it.
type HeapObject struct {
	Addr Addr `json:"addr"`
	// Size is what the program asked for, in bytes.
	Size uint64 `json:"size"`
	// Slot and SlotEnd bound the memory set aside for it.
	Slot    Addr      `json:"slot"`
	SlotEnd Addr      `json:"slot_end"`
	State   HeapState `json:"state"`
	// API is the interface it came from: "malloc", "operator new", "operator new[]".
	API string `json:"api"`
	// Allocated and Freed are nil when the call is not known any more; Freed
	// also for a live object.
	Allocated *HeapCall `json:"allocated,omitempty"`
	Freed     *HeapCall `json:"freed,omitempty"`
}

// Damage is a run of bytes that are not as the agent wrote them.
type Damage struct {
	Start Addr `json:"start"`
	End   Addr `json:"end"`
	// Offset is the distance of Start from the object's start, negative for an
	// underflow.
	Offset int64 `json:"offset"`
	// Overwritten counts the bytes between Start and End that differ.
	Overwritten int `json:"overwritten"`
	// Bytes is the memory from Start on, hexadecimal, in memory order and cut
	// to a length that a person reads, Text its printable ones, and Expected
	// the bytes before the damage. In a report "xx" is a byte of a secret.
	Bytes    string `json:"bytes"`
	Text     string `json:"text"`
	Expected string `json:"expected,omitempty"`
	// Before is the memory directly before Start, hexadecimal: of an overflow
	// the object's last bytes.
	Before string `json:"before,omitempty"`
	// Reaches says that the damage reaches the end of the guard, so
	// that more may have been overwritten.
	Reaches bool `json:"reaches_end,omitempty"`
}

// HeapSite sums up the objects of one allocation site.
type HeapSite struct {
	Allocated HeapCall `json:"allocated"`
	// LiveObjects and LiveBytes count the program's live objects, Quarantined and
	// QuarantinedBytes the freed ones that are kept.
	LiveObjects      uint64 `json:"live_objects"`
	LiveBytes        uint64 `json:"live_bytes"`
	Quarantined      uint64 `json:"quarantined"`
	QuarantinedBytes uint64 `json:"quarantined_bytes"`
	// Largest is the size of its largest live object.
	Largest uint64 `json:"largest"`
}

// Heap is a summary of a process's heap: of the agent's, or of the C library's malloc.
type Heap struct {
	Program Program `json:"program"`
	// AgentHeap is nil for the heap of malloc, Malloc for that of the agent.
	*AgentHeap
	Malloc *MallocHeap `json:"malloc,omitempty"`
	// LiveObjects and LiveBytes are of the program's live objects.
	LiveObjects uint64 `json:"live_objects"`
	LiveBytes   uint64 `json:"live_bytes"`
	// MappedBytes is the memory mapped for objects.
	MappedBytes uint64 `json:"mapped_bytes"`
	// Sites with most live bytes first; Elided counts those left out. Malloc's heap has none.
	Sites  []HeapSite `json:"sites"`
	Elided int        `json:"elided,omitempty"`
	// Findings are the damaged objects, and the misuse found while it ran; Damaged counts the
	// objects, or the headers of malloc's heap, that are damaged now.
	Findings []Finding `json:"findings,omitempty"`
	Damaged  uint64    `json:"damaged"`
	Limits   []Limit   `json:"limits,omitempty"`
	Timings  []Timing  `json:"-"`
}

// check reports what makes the damage unusable: no bytes, or an end before the
// start.
func (d *Damage) check() error {
	if d.End <= d.Start || d.Overwritten < 1 || uint64(d.Overwritten) > uint64(d.End-d.Start) {
		return fmt.Errorf("damage from %v to %v with %d bytes overwritten", d.Start, d.End, d.Overwritten)
	}
	return nil
}

// Check reports what makes the summary unusable.
func (h *Heap) Check() error {
	if (h.AgentHeap == nil) == (h.Malloc == nil) {
		return errors.New("the summary has to be either of the agent's heap or of malloc's")
	}
	if h.Malloc != nil {
		if err := h.Malloc.check(); err != nil {
			return err
		}
	}
	for i := range h.Findings {
		if err := h.Findings[i].Check(); err != nil {
			return err
		}
	}
	return nil
}
