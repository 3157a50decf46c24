package driver

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/staticscan"
)

// pointer is an address that the failure is about, and what it is called.
type pointer struct {
	name string
	addr evidence.Addr
}

// heapFailure opens the agent's heap and says what it tells of the failure:
// that the agent ended the process, or that the pointer which failed has to do
// with an object.
func (a *analysis) heapFailure() error {
	h, err := openHeap(a.process)
	if h == nil || err != nil {
		return err
	}
	a.heap = h
	err = h.readErrors()
	f := &a.result.Failure
	if a.thread == nil || a.bystander() || f.Signal == nil {
		return err
	}
	if e := h.fatal(a.thread.Ref.TID); e != nil && f.Signal.Number == int(unix.SIGABRT) {
		return first(err, a.endedByAgent(e))
	}
	if f.Fault != nil {
		return first(err, a.heapFault())
	}
	return err
}

func first(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// endedByAgent makes the misuse that the agent found the failure.
func (a *analysis) endedByAgent(e *agent.Error) error {
	found, v, err := a.heap.errorFinding(e)
	f := &a.result.Failure
	f.Kind, f.Proof, f.Message, f.Exception, f.Instruction = v.failure, found.Proof, "", nil, nil
	if f.Site == nil || image.LibraryCode(f.Site) {
		// The stack as the agent walked it stands where ours is lost; a check at
		// exit has no place in the program.
		f.Site = found.Site
		f.Source = nil
		if f.Site != nil {
			f.Source = failure.SourceLines(*f.Site, sourceContext, a.sourcePaths(f.Site))
		}
	}
	a.heapWords = &failure.HeapWords{What: v.what, Why: v.why}
	a.resay()
	return err
}

// resay says the failure again with what is known by now.
func (a *analysis) resay() {
	a.names.Threads, a.names.Heap = len(a.process.Threads), a.heapWords
	a.result.Failure.Sentence = failure.Sentence(a.result.Failure, a.names)
}

// heapFault judges a memory fault by the objects that its pointers name.
func (a *analysis) heapFault() error {
	pointers := a.faultPointers()
	if done, err := a.readFromFreed(pointers); done || err != nil {
		return err
	}
	if a.readFromGuard(pointers) {
		return nil
	}
	fault := a.result.Failure.Fault
	near, found, err := a.heap.Nearest(fault.Addr)
	if err != nil {
		return err
	}
	base, ok := a.objectOfBase(pointers)
	switch {
	case ok && !found && fault.Place.Class != evidence.PlaceUnmapped:
		return nil // in memory of another kind, which has its own words
	case ok && (!found || base.Addr != near.Object.Addr):
		// It passed over what lies between.
		return a.faultBeside(&base, near.Where, evidence.Inferred)
	case found:
		return a.faultBeside(&near.Object, near.Where, evidence.FromCore)
	}
	return nil
}

// faultPointers are the address of the fault and the registers that made it.
func (a *analysis) faultPointers() []pointer {
	f := &a.result.Failure
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
func (a *analysis) readFromFreed(pointers []pointer) (bool, error) {
	for _, p := range pointers {
		o, offset, ok, err := a.heap.FillWord(uint64(p.addr))
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		err = a.heap.findFrees(&o)
		f := &a.result.Failure
		f.Kind, f.Proof = evidence.UseAfterFree, evidence.FromCore
		if o.State == agent.Live || !plainOffset(offset) {
			f.Proof = evidence.Inferred
		}
		a.filled = &filled{object: o, pointer: p, offset: offset}
		f.Fault.Place.Text = fmt.Sprintf("not canonical: what %s at %v is filled with%s", sized(&o), o.Addr, added(int64(f.Fault.Addr-p.addr)+offset))
		a.heapWords = &failure.HeapWords{What: "use after free", Why: a.filled.why(a.heap, "")}
		a.resay()
		return true, err
	}
	return false, nil
}

// plainOffset reports whether a member's offset leaves a fill word's number of
// the object alone: DG_FILL_LOW of the agent's layout.h.
func plainOffset(offset int64) bool { return offset >= -agent.FillLow && offset < 4096-agent.FillLow }

// filled is the freed object whose fill was used as a pointer.
type filled struct {
	object  agent.Object
	pointer pointer
	// offset is what was added to the word.
	offset int64
	// cell is where the program read the word; 0 when that is not known.
	cell evidence.Addr
}

// why says where a pointer, as the program calls it, came from.
func (w *filled) why(h *agentHeap, name string) string {
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
	return joined(text, lifeWords(h.object(o)))
}

// added is "" or says what a program added to a pointer, as for a member.
func added(offset int64) string {
	if offset == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d was added to it)", offset)
}

// objectOfBase is the object that a register of the failing operand points
// into.
func (a *analysis) objectOfBase(pointers []pointer) (agent.Object, bool) {
	for _, p := range pointers[:len(pointers)-1] {
		o, found, err := a.heap.Lookup(p.addr)
		if err == nil && found && o.State != agent.Fresh && (o.Contains(p.addr) || o.Size == 0) {
			return o, true
		}
	}
	return agent.Object{}, false
}

// faultBeside places a fault in, behind or before an object.
func (a *analysis) faultBeside(o *agent.Object, where agent.Where, proof evidence.Proof) error {
	err := a.heap.findFrees(o)
	f := &a.result.Failure
	addr := f.Fault.Addr
	place := &f.Fault.Place
	place.Class, place.Text, place.Proof = evidence.PlaceHeap, offsetWords(addr, o), proof
	if where == agent.InGuardPage {
		place.Text += ", in the guard page behind it"
	}
	object := a.heap.object(o)
	why := joined(fmt.Sprintf("%v is %s", addr, place.Text), lifeWords(object))
	a.faulted = o
	switch {
	case f.Kind == evidence.ExecuteOfData:
	case o.State != agent.Live && addr >= o.Slot && (addr < o.SlotEnd || where == agent.InGuardPage):
		f.Kind, f.Proof = evidence.UseAfterFree, proof
		a.heapWords = &failure.HeapWords{What: "use after free", Why: why}
	case o.State != agent.Live: // too far from it
	case addr >= o.SlotEnd && (where == agent.InGuardPage || proof == evidence.Inferred):
		f.Kind, f.Proof = evidence.HeapOverflow, proof
		a.heapWords = &failure.HeapWords{What: "heap overflow", Why: why}
	case addr < o.Slot:
		f.Kind, f.Proof = evidence.HeapUnderflow, evidence.Inferred
		a.heapWords = &failure.HeapWords{What: "heap underflow", Why: why}
	}
	a.resay()
	return err
}

// blameHeap adds to the words what the origin of the bad pointer tells: its
// name, and the memory that it was read from.
func (a *analysis) blameHeap(blame *staticscan.Blame) {
	if a.heap == nil || blame.Cell == nil {
		return
	}
	name := ""
	if blame.Role == staticscan.RolePointer || blame.Role == staticscan.RoleTarget {
		name = blame.Pointer
	}
	o, found, err := a.heap.Lookup(*blame.Cell)
	if err != nil || !found || o.State == agent.Fresh {
		return
	}
	a.cell = *blame.Cell
	switch {
	case a.guarded != nil:
		if blame.CellHolds && !o.Contains(a.cell) {
			a.heapWords.Why = a.guarded.why(a.heap, name, a.cell, &o)
		}
	case a.filled != nil:
		if o.Addr == a.filled.object.Addr && blame.CellHolds {
			a.filled.cell = a.cell
		}
		a.heapWords.Why = a.filled.why(a.heap, name)
	case o.State != agent.Live && a.heapWords == nil && blame.Role != "" && blame.CellHolds && o.Contains(a.cell):
		a.readStale(&o, name)
	}
}

// readStale is for a bad pointer that was read from a freed object, behind its
// fill or after that was overwritten.
func (a *analysis) readStale(o *agent.Object, name string) {
	if err := a.heap.findFrees(o); err != nil {
		a.limit(evidence.Limit{Text: err.Error()})
	}
	if name == "" {
		name = "the value"
	}
	f := &a.result.Failure
	f.Kind, f.Proof = evidence.UseAfterFree, evidence.Inferred
	a.heapWords = &failure.HeapWords{What: "use after free", Why: joined(fmt.Sprintf("%s was read from offset %d of %s at %v",
		name, a.cell-o.Addr, sized(o), o.Addr), lifeWords(a.heap.object(o)))}
}
