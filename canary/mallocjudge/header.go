package mallocjudge

import (
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
	"diagnose/image/ptmalloc"
	"diagnose/internal/wording"
)

// judgeHeaders looks for the first bad header of each piece of the heap.
func (j *judge) judgeHeaders() {
	for _, s := range j.heap.Segments() {
		if !j.settled(s.Arena()) {
			continue
		}
		bad, err := j.heap.Check(&s)
		if err != nil || bad == nil {
			continue
		}
		j.overwritten = append(j.overwritten, bad)
		if len(j.overwritten) <= mostHeaders {
			j.list = append(j.list, j.headerFinding(bad))
		}
	}
}

// headerFinding describes a bad header and its neighbours.
func (j *judge) headerFinding(bad *ptmalloc.BadHeader) evidence.Finding {
	c := &bad.Chunk
	facts := &evidence.HeapFacts{Header: &evidence.ChunkHeader{Addr: c.Addr, Bytes: wordBytes(c.PrevSize, c.SizeWord),
		Fault: bad.Fault, SizeWord: evidence.Addr(c.SizeWord), Size: bad.TrueSize()}}
	f := evidence.Finding{Kind: evidence.FindingHeapHeader, Addr: c.Addr, Size: 16, Heap: facts, Proof: evidence.FromCore}
	f.Summary = fmt.Sprintf("the heap's header at %v was overwritten", c.Addr)
	next := *c
	next.Size = bad.TrueSize()
	if c.Top {
		next.Size = 0
	}
	facts.Next = j.chunkOf(&next)
	if bad.Before == nil {
		return f
	}
	before := bad.Before
	facts.Object = j.chunkOf(before)
	f.Summary += fmt.Sprintf("; it is between %s and %s", objectWords(facts.Object), nextWords(facts.Next))
	if bad.Doubt || before.Free.List != "" || !j.overrun(bad) {
		return f
	}
	f.Kind, f.Proof = evidence.FindingHeapOverflow, evidence.Inferred
	f.Addr, f.Size = facts.Object.Addr, int(min(facts.Object.Size, 1<<31))
	f.Summary = fmt.Sprintf("heap overflow: %s was overrun; its contents continue into the heap's header at %v", objectWords(facts.Object), c.Addr)
	return f
}

// overrun reports whether the contents of the object before a bad header continue into it.
func (j *judge) overrun(bad *ptmalloc.BadHeader) bool {
	const looked = 16
	before := make([]byte, min(looked, bad.Before.UserSize()))
	if _, err := j.Process.ReadMemory(bad.Chunk.Addr+8-evidence.Addr(len(before)), before); err != nil {
		return false
	}
	var was uint64
	if size := bad.TrueSize(); size != 0 {
		was = size | bad.Chunk.SizeWord&4 | 1
	}
	return continues(before, binary.LittleEndian.AppendUint64(nil, bad.Chunk.SizeWord), was)
}

func objectWords(o *evidence.Chunk) string {
	return fmt.Sprintf("the object of %s at %v", wording.Count(o.Size, "byte"), o.Addr)
}

func nextWords(o *evidence.Chunk) string {
	switch {
	case o.State == evidence.ChunkRest:
		return fmt.Sprintf("the unused rest of the heap from %v on", o.Addr)
	case o.State == evidence.ChunkFree:
		return fmt.Sprintf("free memory at %v", o.Addr)
	}
	return fmt.Sprintf("the object at %v", o.Addr)
}
