package mallocjudge

import (
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/image/ptmalloc"
	"diagnose/internal/wording"
)

// judgeFreed looks at the pointer that was passed to free or realloc, if the process ended there.
func (j *judge) judgeFreed() {
	if !j.corrupt() {
		return
	}
	proof := evidence.FromCore
	at, known := j.freedByRegisters()
	if j.Freed != nil {
		at, known = *j.Freed, true
	} else {
		proof = evidence.Inferred
	}
	if !known {
		return
	}
	c, found := j.heap.At(at)
	f := evidence.Finding{Addr: at, Proof: proof, Heap: &evidence.HeapFacts{Pointer: at}}
	if !found {
		if !j.mapped(at) {
			f.Kind = evidence.FindingInvalidFree
			f.Summary = fmt.Sprintf("free of %v, which is no object of the heap: it is %s", at, j.Process.Place(at).Text)
			j.list = append(j.list, f)
		}
		return
	}
	facts := f.Heap
	offset := int64(at) - int64(c.User())
	switch {
	case offset == 0 && c.InUse():
		return // an object: its neighbours are overwritten
	case offset == 0 && c.Free.List != "", offset >= 0 && (c.Top || c.Free.List != "") && at%16 == 0:
		f.Kind = evidence.FindingDoubleFree
		facts.Object, facts.Offset = j.chunkOf(&c), uint64(offset)
		if offset != 0 || c.Top {
			f.Proof = evidence.Inferred
		}
		f.Summary = fmt.Sprintf("double free of the object at %v: it %s", at, freeWords(facts.Object, offset))
	case offset > 0 && c.InUse():
		f.Kind = evidence.FindingInvalidFree
		facts.Object, facts.Offset = j.chunkOf(&c), uint64(offset)
		f.Summary = fmt.Sprintf("free of a pointer %s into %s", wording.Count(uint64(offset), "byte"), objectWords(facts.Object))
	default:
		return
	}
	j.list = append(j.list, f)
}

// freedByRegisters is the pointer that malloc's own frames work on: they have it and the pointer to its header, or else it is
// the only free object that they have a pointer to. If there are several, which one was passed is not known.
func (j *judge) freedByRegisters() (evidence.Addr, bool) {
	var passed, pairs, single []evidence.Addr
	for _, v := range j.Saved {
		passed = append(passed, v, v+headerSize)
	}
	for user, c := range j.heap.AtAll(passed) {
		if user < c.User() {
			continue
		}
		if j.has(user) && j.has(user-headerSize) {
			pairs = append(pairs, user)
		}
		if user == c.User() && !c.InUse() {
			single = append(single, user)
		}
	}
	if at, ok := only(pairs); ok {
		return at, true
	}
	return only(single)
}

const headerSize = 16

// has reports whether malloc's frames have a pointer.
func (j *judge) has(v evidence.Addr) bool {
	return slices.Contains(j.Saved, v) || slices.Contains(j.Words, v)
}

// only is the value of a list that has but one.
func only(list []evidence.Addr) (evidence.Addr, bool) {
	slices.Sort(list)
	if list = slices.Compact(list); len(list) != 1 {
		return 0, false
	}
	return list[0], true
}

// mapped reports whether an address is in memory that the heap may have and that was not walked.
func (j *judge) mapped(at evidence.Addr) bool {
	place := j.Process.Place(at)
	return place.Class == evidence.PlaceHeap || place.Class == evidence.PlaceAnonymous
}

// freeWords says in which list a free object is.
func freeWords(o *evidence.Chunk, offset int64) string {
	switch {
	case o.State == evidence.ChunkRest:
		return "is part of the unused rest of the heap already"
	case offset != 0:
		return fmt.Sprintf("is part of %s of free memory at %v already", wording.Count(o.Size, "byte"), o.Addr)
	case o.Thread != nil:
		return "is free already, in the " + string(o.List) + " list of " + o.Thread.Label()
	}
	return fmt.Sprintf("is free already, in a list (%s)", o.List)
}

// known reports whether a finding is about the object at an address.
func (j *judge) known(at evidence.Addr) bool {
	for _, c := range j.chunks {
		if c.Addr == at {
			return true
		}
	}
	return false
}

// judgeLinks reports links of free objects that were overwritten, and objects that are in a list twice.
func (j *judge) judgeLinks() {
	reported := 0
	for i := range j.heap.BadLinks {
		b := &j.heap.BadLinks[i]
		if j.explained(b) || reported == mostHeaders || !j.allSettled() {
			continue
		}
		if f, ok := j.linkFinding(b); ok {
			j.list = append(j.list, f)
			reported++
		}
	}
}

func (j *judge) allSettled() bool {
	for _, a := range j.heap.Arenas {
		if !j.settled(a) {
			return false
		}
	}
	return true
}

// explained reports whether a bad header, after which more was overwritten, tells a bad link.
func (j *judge) explained(b *ptmalloc.BadLink) bool {
	const reach = 1 << 16
	for _, h := range j.overwritten {
		for _, at := range []evidence.Addr{b.Holder, b.To} {
			if at >= h.Chunk.Addr && at < h.Chunk.Addr+reach {
				return true
			}
		}
	}
	return false
}

// linkFinding describes a bad link.
func (j *judge) linkFinding(b *ptmalloc.BadLink) (evidence.Finding, bool) {
	link := &evidence.ListLink{List: b.Free.List, Fault: b.Fault, Addr: b.At, Word: wordBytes(b.Word), To: b.To}
	if b.Size > 8 {
		link.Size = b.Size - 8
	}
	f := evidence.Finding{Addr: b.At, Size: 8, Proof: evidence.Inferred, Heap: &evidence.HeapFacts{Link: link}}
	if b.Fault == evidence.LinkCycle {
		return j.twice(f, b)
	}
	f.Kind = evidence.FindingUseAfterFree
	if b.Holder == 0 {
		f.Summary = fmt.Sprintf("use after free: the %s list%s begins with %v, which is no object: a freed object was written to before malloc used it again",
			b.Free.List, sizeWords(link.Size), b.To)
		return f, b.Fault == evidence.LinkNowhere
	}
	c, found := j.heap.At(b.Holder + 16)
	if !found || c.Addr != b.Holder {
		return f, false
	}
	f.Heap.Object = j.chunkOf(&c)
	f.Summary = fmt.Sprintf("use after free: the freed object of %s at %v was written to; the link to the next free object in it was overwritten",
		wording.Count(f.Heap.Object.Size, "byte"), f.Heap.Object.Addr)
	return f, true
}

// twice describes an object that is in a list twice.
func (j *judge) twice(f evidence.Finding, b *ptmalloc.BadLink) (evidence.Finding, bool) {
	c, found := j.heap.At(b.To + 16)
	if b.Free.List == evidence.ListTcache {
		c, found = j.heap.At(b.To)
	}
	if !found || j.known(c.User()) {
		return f, false
	}
	f.Kind = evidence.FindingDoubleFree
	f.Heap.Object = j.chunkOf(&c)
	f.Summary = fmt.Sprintf("double free of %s: the %s list has it twice", objectWords(f.Heap.Object), b.Free.List)
	return f, true
}

func sizeWords(size uint64) string {
	if size == 0 {
		return ""
	}
	return fmt.Sprintf(" of objects of %s", wording.Count(size, "byte"))
}
