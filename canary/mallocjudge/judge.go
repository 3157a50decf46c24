package mallocjudge

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/allocator"
	"diagnose/image/ptmalloc"
)

// Input is a stopped process and its judged failure.
type Input struct {
	Process *image.Process
	Failure *evidence.Failure
	// Thread is the one that failed, Stacks are those of all threads with their variables, the failing one first.
	Thread *image.Thread
	Stacks []evidence.ThreadGroup
	// Freed is the pointer that was passed to the call of free or realloc in which the process failed; nil: it
	// is not known, or there is no such call.
	Freed *evidence.Addr
	// Saved are the values that the frames from the failure to that call have put in registers that calls keep, and
	// Words those in the memory of these frames.
	Saved, Words []evidence.Addr
	// Other is the heap of another allocator, nil if the process has none. Pointers are the addresses that
	// the failure concerns, which are looked for in the heap.
	Other    allocator.Heap
	Pointers []Pointer
	// StackName names an address on a stack by its variable; empty: it is not known.
	StackName func(evidence.Addr) string
}

// Pointer is an address that the failure concerns. Cell: it is that of the memory that had the bad pointer.
type Pointer struct {
	Name string
	Addr evidence.Addr
	Cell bool
}

// mostHeaders bounds the overwritten headers and links that are reported.
const mostHeaders = 3

// judge collects the findings of one failure.
type judge struct {
	Input
	// heap is the C library's, nil if the process has another one.
	heap *ptmalloc.Heap
	list []evidence.Finding
	// overwritten are the bad headers.
	overwritten []*ptmalloc.BadHeader
	// chunks are those of the findings whose holders are searched, by address.
	chunks []*evidence.Chunk
}

// Findings judges the failure. A process whose heap is not known, or is not certain, has none.
func Findings(in Input) []evidence.Finding {
	if in.Other != nil {
		j := &judge{Input: in}
		if j.otherHeap(); len(j.list) > 0 {
			j.findHolders()
			return j.list
		}
	}
	heap, err := ptmalloc.Open(in.Process)
	if err != nil {
		return nil // the heap is another one, or there is none
	}
	j := &judge{Input: in, heap: heap}
	j.judgeFreed()
	j.judgeHeaders()
	j.judgeLinks()
	j.judgePointers()
	j.findHolders()
	return j.list
}

// corrupt reports whether malloc itself ended the process.
func (j *judge) corrupt() bool { return j.Failure.Kind == evidence.HeapCorruption }

// settled reports whether an arena is as malloc leaves it after a call. It is not while a thread is inside malloc, unless
// that is the one that malloc ended, or that faulted there: malloc changes nothing before it checks.
func (j *judge) settled(a *ptmalloc.Arena) bool {
	if j.corrupt() {
		return true
	}
	if a.Locked && !(j.faulted() && j.mayBeInMalloc(j.Thread)) {
		return false
	}
	for i := range j.Process.Threads {
		t := &j.Process.Threads[i]
		if j.faulted() && t.Ref.TID == j.Thread.Ref.TID {
			continue
		}
		if j.mayBeInMalloc(t) {
			return false
		}
	}
	return true
}

// faulted reports whether the kernel ended the process because of what the thread did.
func (j *judge) faulted() bool {
	return j.Thread != nil && j.Failure.Signal != nil && j.Failure.Signal.Code > 0
}

// mayBeInMalloc reports whether a thread is in the C library and not at a system call.
func (j *judge) mayBeInMalloc(t *image.Thread) bool {
	pc := t.Registers.PC()
	if j.Process.ModuleAt(pc) != j.heap.Module() {
		return false
	}
	var code [2]byte
	_, err := j.Process.ReadMemory(pc-2, code[:])
	return err != nil || code != [2]byte{0x0f, 0x05}
}

// chunkOf describes a chunk.
func (j *judge) chunkOf(c *ptmalloc.Chunk) *evidence.Chunk {
	x := &evidence.Chunk{Addr: c.User(), Size: c.UserSize(), State: evidence.ChunkInUse, List: c.Free.List, Mapped: c.Mapped}
	switch {
	case c.Top:
		x.State = evidence.ChunkRest
	case c.Free.List != "":
		x.State = evidence.ChunkFree
	}
	if c.Free.List == evidence.ListTcache && c.Free.Thread < len(j.Process.Threads) {
		ref := j.Process.Threads[c.Free.Thread].Ref
		x.Thread = &ref
	}
	const shown = 32
	x.First = j.bytesAt(x.Addr, int(min(x.Size, shown)))
	j.chunks = append(j.chunks, x)
	return x
}
