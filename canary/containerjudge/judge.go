package containerjudge

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/value"
	"diagnose/staticscan"
)

// Input is a stopped process and its judged failure.
type Input struct {
	Process *image.Process
	// Thread failed, with Failure. Frames are its frames from the failure outward.
	Thread  *image.Thread
	Failure *evidence.Failure
	Frames  []unwind.Frame
	// Blame is the origin of the bad pointer; nil: it is not known.
	Blame *staticscan.Blame
	// Freed is the freed object of the heap at an address; nil: there is none, or it is not known.
	Freed func(evidence.Addr) *Freed
}

// Freed is an object of the heap that was freed.
type Freed struct {
	Addr evidence.Addr
	Size uint64
	// Call freed it; nil: it is not known.
	Call *evidence.HeapCall
}

// has reports whether an address is in the object.
func (f *Freed) has(addr evidence.Addr) bool {
	return addr >= f.Addr && uint64(addr-f.Addr) < max(f.Size, 1)
}

// judge is the state of one judgement.
type judge struct {
	Input
	*scope
}

// Use returns the use of a container that explains the failure; nil: none is known.
func Use(in Input) *evidence.ContainerUse {
	if in.Process == nil || in.Thread == nil || in.Failure == nil || len(in.Frames) == 0 {
		return nil
	}
	j := &judge{in, nil}
	if in.Failure.Fault == nil {
		switch in.Failure.Kind {
		case evidence.AssertionFailure, evidence.CxxTerminate, evidence.Abort, evidence.TrapInsn:
			j.scope = newScope(&in)
			return j.refused()
		}
		return nil
	}
	if in.Blame == nil || in.Blame.Role == "" {
		return nil
	}
	j.scope = newScope(&in)
	for _, way := range []func() *evidence.ContainerUse{j.returned, j.indexed, j.loaded, j.nowhere} {
		if u := way(); u != nil {
			return u
		}
	}
	return nil
}

// returned is for an element whose address a function of the library returned.
func (j *judge) returned() *evidence.ContainerUse {
	b := j.Blame
	switch {
	case len(b.Loads) > 0 && b.Loads[0].Call != nil:
		return j.given(b.Loads[0].Call, b.Loads[0].Base)
	case len(b.Loads) == 0 && b.Returned != nil:
		return j.given(b.Returned, b.Value)
	}
	return nil
}

// indexed is for an instruction that computed the element's address from the start of a vector or string.
func (j *judge) indexed() *evidence.ContainerUse {
	i := j.Failure.Instruction
	if i == nil || j.Blame.Through != "" || len(j.Blame.Steps) == 0 {
		return nil
	}
	fault := j.Failure.Fault.Addr
	for _, op := range i.Operands {
		if op.Address == nil || *op.Address != fault || len(op.Registers) < 2 {
			continue
		}
		for k := range j.containers {
			c := &j.containers[k]
			if c.Begin == 0 || c.Begin != op.Registers[0].Value && c.Begin != op.Registers[1].Value {
				continue
			}
			if u := j.element(c, fault, ""); u != nil {
				return u
			}
		}
	}
	if len(j.Blame.Loads) == 0 || j.Blame.Loads[0].Cell == nil || j.Blame.Value == nil {
		return nil
	}
	for k := range j.containers { // the bad pointer is the start itself, which is null
		c := &j.containers[k]
		if c.Head == *j.Blame.Loads[0].Cell && c.Begin == *j.Blame.Value {
			return j.element(c, fault, "")
		}
	}
	return nil
}

// loaded is for a bad pointer that was read through an iterator, without a call.
func (j *judge) loaded() *evidence.ContainerUse {
	if len(j.Blame.Loads) == 0 {
		return nil
	}
	l := &j.Blame.Loads[0]
	if l.Base == nil || l.Cell == nil {
		return nil
	}
	for k := range j.containers {
		c := &j.containers[k]
		if c.Sentinel == 0 || !j.readsEnd(c, l) {
			continue
		}
		if i := j.iteratorAt(c.Sentinel); i != nil || c.Size > 0 {
			return &evidence.ContainerUse{Misuse: evidence.MisuseEnd, Container: c.facts(), Iterator: i}
		}
		return emptied(c, "")
	}
	for k := range j.containers {
		if c := &j.containers[k]; c.pastEnd(*l.Cell) {
			return &evidence.ContainerUse{Misuse: evidence.MisuseEnd, Container: c.facts(), Iterator: j.iteratorAt(c.End)}
		}
	}
	for k := range j.iterators {
		i := &j.iterators[k]
		if i.Position == 0 || i.Position != *l.Base && !j.sameFreed(i.Position, *l.Cell) {
			continue
		}
		if u := j.through(i, ""); u != nil {
			return u
		}
	}
	return nil
}

// nowhere is for an iterator of a hash table in the register that had the bad pointer: end() is a null pointer.
func (j *judge) nowhere() *evidence.ContainerUse {
	if len(j.Blame.Loads) > 0 || j.Blame.Register == "" || j.Blame.Value == nil || *j.Blame.Value != 0 {
		return nil
	}
	for k := range j.iterators {
		if i := &j.iterators[k]; i.Kind == evidence.ContainerHash && i.Position == 0 && i.register == j.Blame.Register {
			return j.through(i, "")
		}
	}
	return nil
}

// mostElement bounds how far in an element at end() a value is looked for.
const mostElement = 512

// readsEnd reports whether a load read where the node that stands for the end would have its element. The address of
// that node may also be the container's own, and that of an object that begins with the container: then the memory past
// the container must be of no other variable.
func (j *judge) readsEnd(c *container, l *staticscan.Load) bool {
	const links = 16 // a node has two pointers at least before its element
	if *l.Cell < c.Sentinel+links || *l.Cell >= c.Sentinel+mostElement {
		return false
	}
	switch *l.Base {
	case c.Addr:
		return *l.Cell < c.Addr+evidence.Addr(c.typ.Size()) || !j.covered(*l.Cell)
	case c.Sentinel:
		return true
	}
	return false
}

// sameFreed reports whether two addresses are in one object of the heap that was freed.
func (j *judge) sameFreed(x, y evidence.Addr) bool {
	if j.Freed == nil {
		return false
	}
	f := j.Freed(x)
	return f != nil && f.has(y)
}

// element is the use of the element at an address in or beyond a vector or string; nil: it has this element.
func (j *judge) element(c *container, at evidence.Addr, function string) *evidence.ContainerUse {
	if c.Elem == nil || c.Elem.Size() <= 0 {
		return nil
	}
	size := c.Elem.Size()
	offset := int64(at - c.Begin)
	index := offset / size
	if offset < 0 && offset%size != 0 {
		index--
	}
	return j.index(c, index, "", function)
}

// index is the use of an element by its index; nil: the container has it. A string has its NUL at the index of its
// size.
func (j *judge) index(c *container, index int64, name, function string) *evidence.ContainerUse {
	last := c.Size
	if c.Kind == evidence.ContainerString {
		last++
	}
	if index >= 0 && uint64(index) < last {
		return nil
	}
	if index == 0 && c.Size == 0 {
		return emptied(c, function)
	}
	if name == "" {
		name = j.variableOf(index)
	}
	return &evidence.ContainerUse{Misuse: evidence.MisuseIndex, Container: c.facts(), Index: &index, IndexName: name, Function: function}
}

// emptied is the use of an element of an empty container.
func emptied(c *container, function string) *evidence.ContainerUse {
	return &evidence.ContainerUse{Misuse: evidence.MisuseEmpty, Container: c.facts(), Function: function}
}

// through is the use of the element at an iterator; nil: it has one, or it is not known.
func (j *judge) through(i *iterator, function string) *evidence.ContainerUse {
	var ends, others []*container
	for k := range j.containers {
		c := &j.containers[k]
		switch c.Place(i.Iterator) {
		case value.PlaceAtElement:
			return nil
		case value.PlaceAtEnd:
			ends = append(ends, c)
		case value.PlaceElsewhere:
			if c.Elem == nil || c.Begin != 0 || c.Kind != evidence.ContainerVector { // a vector without memory never had an element
				others = append(others, c)
			}
		}
	}
	if len(ends) == 1 {
		return &evidence.ContainerUse{Misuse: evidence.MisuseEnd, Container: ends[0].facts(), Iterator: i.facts(), Function: function}
	}
	if len(ends) > 1 || i.Position == 0 || j.Freed == nil {
		return nil
	}
	freed := j.Freed(i.Position)
	if freed == nil {
		return nil
	}
	u := &evidence.ContainerUse{Misuse: evidence.MisuseStale, Iterator: i.facts(), Function: function, Invalidated: image.InvalidatedBy(freed.Call)}
	if len(others) == 1 {
		u.Container = others[0].facts()
	}
	return u
}
