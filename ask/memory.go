package ask

import (
	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/watchtrace"
)

// owner is who uses memory at the end of the span, and the word that says since when.
type owner struct {
	memory *Memory
	// birth is the word that the begin of the owner's life writes; 0: there is none.
	birth     evidence.Addr
	birthSize int
	// begins reports whether a write of the word is such a begin.
	begins func(a *evidence.Access) bool
	// live reports for a heap object whether the word says that it is allocated; nil: it is no heap object.
	live func(value uint64) bool
}

// ownerOf finds out whose the memory is. code is a process whose code can be read later.
func ownerOf(p *image.Process, x *addressed, code func() *image.Process) *owner {
	o := &owner{memory: &Memory{Address: x.addr, Size: x.size, Home: HomeOther, Proof: evidence.Inferred}}
	if x.typ != nil {
		o.memory.Type = x.typ.Name()
	}
	if x.subject != nil && len(x.locals) > 0 {
		o.memory.In = x.site
	}
	if s, found := p.SymbolAt(x.addr); found && s.Module != nil {
		o.memory.Home, o.memory.Proof = HomeStatic, evidence.Replayed
	} else if !o.heap(p) {
		o.stack(p, x, code)
	}
	return o
}

// heap finds the object of the agent's heap.
func (o *owner) heap(p *image.Process) bool {
	heap, err := watchtrace.OpenHeap(p)
	if err != nil || !heap.InObjects(o.memory.Address) {
		return false
	}
	object, found, err := heap.Lookup(o.memory.Address)
	if err != nil || !found || object.State == agent.Fresh || !object.Contains(o.memory.Address) {
		return false
	}
	m := o.memory
	m.Home, m.Object = HomeHeap, &Object{Address: object.Addr, Size: object.Size, State: object.State.Evidence(), Allocated: allocationOf(p, heap, &object)}
	word, found, err := heap.StateWord(o.memory.Address)
	if err != nil || !found {
		return true
	}
	m.Proof = evidence.Replayed
	o.birth, o.birthSize, o.live = word.Addr, word.Size, word.Live
	o.begins = func(a *evidence.Access) bool { return word.Live(a.New) && !word.Live(a.Old) }
	return true
}

// allocationOf is the innermost line of the program's own code that allocated an object; nil: it is not known.
func allocationOf(p *image.Process, heap *agent.Heap, o *agent.Object) *evidence.Site {
	pcs, err := heap.Site(o.Allocated.Site)
	if err != nil {
		return nil
	}
	for _, pc := range pcs {
		for _, call := range p.Symbolize(pc, image.ReturnAddress) {
			if !image.LibraryCode(&call.Site) {
				return &call.Site
			}
		}
	}
	return nil
}

// mostThreads bounds the threads whose stacks are searched for an address.
const mostThreads = 256

// redZone is how much memory below the stack pointer a function may use (System V ABI for x86-64, 3.2.2).
const redZone = 128

// stack finds the frame that the memory is in, if there is one. A call begins with the write of its return address, right below the CFA.
func (o *owner) stack(p *image.Process, x *addressed, code func() *image.Process) {
	const word = 8
	m := p.MappingAt(x.addr)
	if m == nil {
		return
	}
	for i := range p.Threads[:min(len(p.Threads), mostThreads)] {
		for n, f := range framesOf(p, &p.Threads[i]) {
			sp, known := f.Registers.Get(image.RSP)
			if n == 0 {
				sp -= redZone
			}
			// The stack may continue elsewhere: in the recorder, in a handler of a signal.
			if !known || uint64(x.addr) < sp || f.CFA <= word || x.addr >= f.CFA-word || !m.Contains(evidence.Addr(sp)) || !m.Contains(f.CFA-word) {
				continue
			}
			site := functionOf(p, f.Registers.PC(), f.Lookup)
			o.memory.Home, o.memory.Frame = HomeStack, site
			if x.subject == nil || !x.inlined {
				o.memory.Proof = evidence.Replayed
			}
			o.birth, o.birthSize = f.CFA-word, word
			o.begins = func(a *evidence.Access) bool { return isCall(code(), a.PC) }
			return
		}
	}
}

// functionOf is the physical function of an instruction.
func functionOf(p *image.Process, pc evidence.Addr, how image.Lookup) *evidence.Site {
	calls := p.Symbolize(pc, how)
	return &calls[len(calls)-1].Site
}
