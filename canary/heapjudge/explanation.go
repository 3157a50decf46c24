package heapjudge

import (
	"fmt"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/staticscan"
)

// pointer is an address that the failure concerns, and its name.
type pointer struct {
	name string
	addr evidence.Addr
}

// Words describe a failure by an object of the heap: What happened ("double
// free of a 40-byte object at 0x1000"), and Why ("first freed by thread 2").
type Words struct{ What, Why string }

// Explanation is what the heap reveals about a failure. It starts with the judged
// failure, and changes it where the heap reveals more.
type Explanation struct {
	heap    *Heap
	failure *evidence.Failure
	// limit is called with the limits of the explanation.
	limit func(...evidence.Limit)

	// Words tell the failure by an object; nil if no object is concerned.
	Words *Words
	// filled is the freed object whose fill the program used as a pointer, guarded the
	// canary that it used as one, and faulted the object near which it faulted. cell is
	// the memory from which the bad value was read, 0 if that is not in the heap.
	filled  *filled
	guarded *guardWord
	faulted *agent.Object
	cell    evidence.Addr
}

// NewExplanation explains a failure by a heap, and changes the failure. limit is called
// with the limits of the explanation.
func NewExplanation(h *Heap, f *evidence.Failure, limit func(...evidence.Limit)) *Explanation {
	return &Explanation{heap: h, failure: f, limit: limit}
}

// Heap is the heap by which the failure is explained.
func (x *Explanation) Heap() *Heap { return x.heap }

// ExplainEnd sets the failure to the misuse for which the agent ended the
// process in a thread. It reports whether there was one.
func (x *Explanation) ExplainEnd(tid int) (bool, error) {
	e := x.heap.fatalError(tid)
	if e == nil {
		return false, nil
	}
	found, v, err := x.heap.errorFinding(e)
	f := x.failure
	f.Kind, f.Proof, f.Message, f.Exception, f.Instruction = v.failure, found.Proof, "", nil, nil
	if f.Site == nil || image.LibraryCode(f.Site) {
		// The agent's walk of the stack is used if ours failed; a check at exit has no
		// place in the program.
		f.Site, f.Source = found.Site, nil
	}
	x.Words = &Words{What: v.what, Why: v.why}
	return true, err
}

// ExplainFault judges a memory fault by the objects that its pointers name. It reports
// whether there is such an object.
func (x *Explanation) ExplainFault() (bool, error) {
	pointers := x.faultPointers()
	if done, err := x.readFromFreed(pointers); done || err != nil {
		return done, err
	}
	if x.readFromGuard(pointers) {
		return true, nil
	}
	fault := x.failure.Fault
	near, found, err := x.heap.Nearest(fault.Addr)
	if err != nil {
		return false, err
	}
	base, ok := x.objectOfBase(pointers)
	switch {
	case ok && !found && fault.Place.Class != evidence.PlaceUnmapped:
		return false, nil // in memory of another kind, which is described elsewhere
	case ok && (!found || base.Addr != near.Object.Addr):
		// The access skipped the memory between the two.
		return true, x.faultBeside(&base, near.Where, evidence.Inferred)
	case found:
		return true, x.faultBeside(&near.Object, near.Where, evidence.FromCore)
	}
	return false, nil
}

// faultPointers are the address of the fault and the registers that it was
// computed from.
func (x *Explanation) faultPointers() []pointer {
	f := x.failure
	var list []pointer
	if f.Instruction != nil {
		for _, o := range f.Instruction.Operands {
			if o.Access == "" {
				continue
			}
			for _, r := range o.Registers {
				p := pointer{r.Name, r.Value}
				if o.Address != nil && !slices.Contains(list, p) {
					list = append(list, p)
				}
			}
		}
	}
	return append(list, pointer{"the address", f.Fault.Addr})
}

// readFromFreed recognises a pointer that was read from the fill of a freed
// object.
func (x *Explanation) readFromFreed(pointers []pointer) (bool, error) {
	for _, p := range pointers {
		o, offset, ok, err := x.heap.FillWord(uint64(p.addr))
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		err = x.heap.findFrees(&o)
		f := x.failure
		f.Kind, f.Proof = evidence.UseAfterFree, evidence.FromCore
		if o.State == agent.Live || !plainOffset(offset) {
			f.Proof = evidence.Inferred
		}
		x.filled = &filled{object: o, pointer: p, offset: offset}
		f.Fault.Place.Text = evidence.Say(fmt.Sprintf("not canonical: what %s at %v is filled with%s", sized(&o), o.Addr, added(int64(f.Fault.Addr-p.addr)+offset)))
		x.Words = &Words{What: "use after free", Why: x.filled.why(x.heap, "")}
		return true, err
	}
	return false, nil
}

// plainOffset reports whether adding a member's offset leaves the object's
// number in a fill word unchanged: DG_FILL_LOW of the agent's layout.h.
func plainOffset(offset int64) bool { return offset >= -agent.FillLow && offset < 4096-agent.FillLow }

// filled is the freed object whose fill was used as a pointer.
type filled struct {
	object  agent.Object
	pointer pointer
	// offset is the number that was added to the word.
	offset int64
	// cell is where the program read the word; 0 when that is not known.
	cell evidence.Addr
}

// why says where a pointer came from; name is the program's name for it.
func (w *filled) why(h *Heap, name string) string {
	o := &w.object
	if name == "" {
		name = fmt.Sprintf("%v", w.pointer.addr)
	}
	where := ""
	if w.cell != 0 {
		where = fmt.Sprintf("offset %d of ", w.cell-o.Addr)
	}
	text := fmt.Sprintf("%s was read from %s%s at %v", name, where, sized(o), o.Addr)
	if o.State == agent.Live {
		text = fmt.Sprintf("%s was read from freed memory at %v, which is %s by now", name, o.Addr, articled(o.Size))
	}
	if w.cell == 0 {
		text += added(w.offset)
	}
	return joined(text, lifeWords(h.Object(o)))
}

// added names the offset that the program added to a pointer, such as a
// member's; "" for none.
func added(offset int64) string {
	if offset == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d was added to it)", offset)
}

// objectOfBase is the object that a register of the failing operand points
// into.
func (x *Explanation) objectOfBase(pointers []pointer) (agent.Object, bool) {
	for _, p := range pointers[:len(pointers)-1] {
		o, found, err := x.heap.Lookup(p.addr)
		if err == nil && found && o.State != agent.Fresh && (o.Contains(p.addr) || o.Size == 0) {
			return o, true
		}
	}
	return agent.Object{}, false
}

// faultBeside describes a fault in, after or before an object.
func (x *Explanation) faultBeside(o *agent.Object, where agent.Where, proof evidence.Proof) error {
	err := x.heap.findFrees(o)
	f := x.failure
	addr := f.Fault.Addr
	place := &f.Fault.Place
	text := offsetWords(addr, o)
	if where == agent.InGuardPage {
		text += ", in the guard page after it"
	}
	place.Class, place.Text, place.Proof = evidence.PlaceHeap, evidence.Say(text), proof
	object := x.heap.Object(o)
	why := joined(fmt.Sprintf("%v is %s", addr, text), lifeWords(object))
	x.faulted = o
	switch {
	case f.Kind == evidence.ExecuteOfData:
	case o.State != agent.Live && addr >= o.Slot && (addr < o.SlotEnd || where == agent.InGuardPage):
		f.Kind, f.Proof = evidence.UseAfterFree, proof
		x.Words = &Words{What: "use after free", Why: why}
	case o.State != agent.Live: // too far from it
	case addr >= o.SlotEnd && (where == agent.InGuardPage || proof == evidence.Inferred):
		f.Kind, f.Proof = evidence.HeapOverflow, proof
		x.Words = &Words{What: "heap overflow", Why: why}
	case addr < o.Slot:
		f.Kind, f.Proof = evidence.HeapUnderflow, evidence.Inferred
		x.Words = &Words{What: "heap underflow", Why: why}
	}
	return err
}

// AddOrigin adds the origin of the bad pointer to the words: its name, and the
// memory from which it was read.
func (x *Explanation) AddOrigin(blame *staticscan.Blame) {
	if blame.Cell == nil {
		return
	}
	name := ""
	if blame.Role == staticscan.RolePointer || blame.Role == staticscan.RoleTarget {
		name = blame.Pointer
	}
	o, found, err := x.heap.Lookup(*blame.Cell)
	if err != nil || !found || o.State == agent.Fresh {
		return
	}
	x.cell = *blame.Cell
	switch {
	case x.guarded != nil:
		if blame.CellHolds && !o.Contains(x.cell) {
			x.Words.Why = x.guarded.why(x.heap, name, x.cell, &o)
		}
	case x.filled != nil:
		if o.Addr == x.filled.object.Addr && blame.CellHolds {
			x.filled.cell = x.cell
		}
		x.Words.Why = x.filled.why(x.heap, name)
	case o.State != agent.Live && x.Words == nil && blame.Role != "" && blame.CellHolds && o.Contains(x.cell):
		x.readStale(&o, name)
	}
}

// readStale is for a bad pointer that was read from a freed object, past its
// fill or after the fill was overwritten.
func (x *Explanation) readStale(o *agent.Object, name string) {
	if err := x.heap.findFrees(o); err != nil {
		x.limit(evidence.Limit{Code: evidence.LimitHeapUnread, Reason: err.Error()}.Worded())
	}
	if name == "" {
		name = "the value"
	}
	f := x.failure
	f.Kind, f.Proof = evidence.UseAfterFree, evidence.Inferred
	x.Words = &Words{What: "use after free", Why: joined(fmt.Sprintf("%s was read from offset %d of %s at %v",
		name, x.cell-o.Addr, sized(o), o.Addr), lifeWords(x.heap.Object(o)))}
}
