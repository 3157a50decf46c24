package agent

import (
	"encoding/binary"
	"fmt"
)

// FailedAllocation is the last allocation that failed for lack of memory.
type FailedAllocation struct {
	// Size is what it asked for, in bytes; math.MaxUint64: the product of its
	// arguments is no number.
	Size uint64
	// By is its call.
	By Call
	// Failures counts all that failed, Since the allocations of the same
	// thread's heap that succeeded after it.
	Failures, Since uint64
}

// LastFailure returns the last allocation that failed; ok is false if none did.
func (h *Heap) LastFailure() (f FailedAllocation, ok bool, err error) {
	r := h.root
	if r.Failures == 0 {
		return FailedAllocation{}, false, nil
	}
	f = FailedAllocation{Size: r.FailedSize, By: Call{Site: r.FailedSite, Thread: r.FailedThread}, Failures: r.Failures}
	th, err := h.Thread(r.FailedThread)
	if err != nil {
		return f, true, err
	}
	if th.Heap < 0 || uint64(th.Heap) >= r.Heaps.Used {
		return f, true, fmt.Errorf("agent: thread %d has heap %d, and there are %d", r.FailedThread, th.Heap, r.Heaps.Used)
	}
	raw, err := readRaw[RawHeap](h.source, "a heap", r.Heaps.Start+uint64(th.Heap)*uint64(binary.Size(RawHeap{})))
	if err != nil {
		return f, true, err
	}
	f.Since = max(raw.Allocations, r.FailedAfter) - r.FailedAfter
	return f, true, nil
}
