package provenance

import (
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// low is the size of the lowest memory, which no program has (mmap_min_addr(5)).
const low = 0x10000

// points reports whether a value is an address in memory that the process has, or had on its heap.
func (f *addresses) points(v uint64, n int) bool {
	return v >= low && (f.trace.ObjectAt(evidence.Addr(v), n) != nil || f.program.Mapped(evidence.Addr(v)))
}

// access ends the way at memory operand k of step n, if it breaks a rule: the object that its pointer was derived from was
// freed, or the access is outside of it. Of several outside of one object the first counts.
func (f *follower) access(n, k int) bool {
	o := &f.trace.Step(n).Inst.Operands[k]
	l, known := f.trace.Extent(n, k)
	if !known || l.Size == 0 {
		return false
	}
	addr := l.Addr
	object := f.pointee(n, k)
	if object == nil {
		if f.left(n, k, l) {
			return true
		}
		return f.beyond(n, k, l) || f.beside(n, k, addr)
	}
	freed := object.Freed >= 0 && object.Freed < n
	end := object.Addr + evidence.Addr(object.Size)
	outside := addr < object.Addr || addr+evidence.Addr(l.Size) > end
	write := o.Access.Writes()
	if outside && !write && f.program.Foreign(f.trace.Step(n).PC) {
		outside = false // string functions read whole vectors, as far as the page
	}
	if !freed && !outside {
		return f.unfilled(n, k, l, object) || f.beside(n, k, addr)
	}
	if outside && !freed {
		if at, operand := f.first(object, n); at < n {
			f.link(Again, n, l)
			n, k = at, operand
			o = &f.trace.Step(n).Inst.Operands[k]
			l, _ = f.trace.Extent(n, k)
			addr = l.Addr
			write = o.Access.Writes()
		}
	}
	w := f.way
	w.Object, w.Write, w.AccessPC, w.access = object, write, f.ownPlace(n), n
	if freed && !outside {
		f.end(Freed, object.Freed)
		w.Call = object.FreedBy
		return true
	}
	w.Beyond = w.distance(addr)
	f.end(Outside, n)
	w.Led, w.Narrowed = f.led(n, k, object), f.narrowedSize(object, l)
	return true
}

// beyond ends the way at an access, of the bytes l, past the end of the variable whose address its function was handed. One before the start may be meant
// for the variable there: the address of one is that of the end of another. Of a variable without parts only an access that begins in it
// counts: a pointer of another type led there.
func (f *follower) beyond(n, k int, l flow.Location) bool {
	addr := l.Addr
	write := f.trace.Step(n).Inst.Operands[k].Access.Writes()
	if !write && f.program.Foreign(f.trace.Step(n).PC) {
		return false
	}
	v := f.declared(n, k)
	if v == nil || addr+evidence.Addr(l.Size) <= v.end() || addr < v.Addr {
		return false
	}
	if v.Single && addr >= v.end() {
		return false
	}
	w := f.way
	w.Declared, w.Write, w.AccessPC, w.access = v, write, f.ownPlace(n), n
	w.Beyond = max(int64(addr)-int64(v.end()), 0) + 1
	f.end(Outside, n)
	if !v.Single { // else the pointer is as it was handed over
		w.Led = f.led(n, k, &flow.Object{Addr: v.Addr, Size: v.Size, Freed: -1})
	}
	return true
}

// pointee is the object that the pointer in memory operand k of step n was derived from; nil: it is not known.
func (f *follower) pointee(n, k int) *flow.Object {
	for _, l := range f.pointers(n, k) {
		if object := f.derived(l, n); object != nil && object.Made < n {
			return object
		}
	}
	return nil
}

// accessesMemory reports whether an operand is an access to memory that the instruction names: not that of a push, and no address that is only
// computed.
func accessesMemory(o *x86.Operand) bool { return o.IsMemory && o.Access != "" && !o.Implicit }

// pointers are the registers of memory operand k of step n that may have its pointer: not the stack's, and no index of elements.
func (f *addresses) pointers(n, k int) (list []flow.Location) {
	s := f.trace.Step(n)
	m := &s.Inst.Operands[k].Memory
	for _, r := range []x86.Reg{m.Base, m.Index} {
		if r.General() && r != x86.RSP && (r != m.Index || m.Scale == 1) {
			list = append(list, flow.Register(s.Thread, r, 8))
		}
	}
	return list
}

// derived is the object that a pointer was derived from, by copies and by additions of numbers; nil: it
// is not known.
func (f *follower) derived(l flow.Location, n int) *flow.Object {
	// Of a loop that moves a pointer, each of its accesses leads to the same definitions.
	var way []derivation
	o := f.deriveAlong(l, n, &way)
	if len(way) == mostSteps {
		return o // it was not followed to its end
	}
	if f.derivations == nil {
		f.derivations = map[derivation]*flow.Object{}
	}
	for _, x := range way {
		f.derivations[x] = o
	}
	return o
}

// derivation is a value and the step that gave it.
type derivation struct {
	l  flow.Location
	at int
}

// deriveAlong also notes the definitions on its way that were not known yet.
func (f *follower) deriveAlong(l flow.Location, n int, way *[]derivation) *flow.Object {
	for range mostSteps {
		d := f.define(l, n)
		if d.At >= 0 {
			x := derivation{l, d.At}
			if o, known := f.derivations[x]; known {
				return o
			}
			*way = append(*way, x)
		}
		switch d.Kind {
		case flow.Result:
			return f.trace.ObjectMade(d.At)
		case flow.Before:
			return f.pointedBefore(l, n)
		case flow.Copied:
			l, n = d.From[0], d.At
			if l.Size < 8 {
				return nil
			}
		case flow.Computed:
			next, ok := f.pointerOf(d)
			if !ok {
				return nil
			}
			l, n = next, d.At
		default:
			return nil
		}
	}
	return nil
}

// pointedBefore is the object of before the trace that a pointer of before the trace leads to, or into; nil: it is not known.
func (f *addresses) pointedBefore(l flow.Location, n int) *flow.Object {
	v, known := f.value(l, n)
	if !known {
		v, known = f.loaded(l, n)
	}
	if !known {
		return nil
	}
	if o := f.trace.ObjectAt(evidence.Addr(v), n); o != nil && o.Made < 0 {
		return o
	}
	return nil
}

// pointerOf is the operand of an addition or the like that is a pointer; ok is false if none is or several are.
func (f *addresses) pointerOf(d flow.Definition) (l flow.Location, ok bool) {
	inst := f.trace.Step(d.At).Inst
	if inst == nil { // a call of the recording library made it
		return l, false
	}
	switch inst.Op {
	case "add", "lea", "sub", "and", "inc", "dec", "xadd":
	default:
		return l, false
	}
	whole := slices.DeleteFunc(values(d), func(x flow.Location) bool { return x.Size < 8 })
	for _, x := range whole {
		if len(whole) == 1 {
			return x, true // only a constant was added
		}
		v, known := f.value(x, d.At)
		if !known {
			return l, false
		}
		if !f.points(v, d.At) {
			continue
		}
		if ok {
			return l, false // the difference of two pointers, or a sum with one
		}
		l, ok = x, true
	}
	return l, ok
}

// address follows what made the address of operand k of step n bad.
func (f *follower) address(n, k int) {
	m := &f.trace.Step(n).Inst.Operands[k].Memory
	thread := f.trace.Step(n).Thread
	base, index := flow.Register(thread, m.Base, 8), flow.Register(thread, m.Index, 8)
	switch {
	case m.Base.General() && m.Index.General():
		if f.points(f.trace.Register(n, m.Base), n) {
			f.link(Offset, n, index)
			f.follow(index, n)
			return
		}
		if f.points(f.trace.Register(n, m.Index), n) && m.Scale == 1 {
			f.link(Offset, n, base)
			f.follow(base, n)
			return
		}
		f.follow(base, n)
	case m.Base.General():
		f.follow(base, n)
	case m.Index.General():
		f.follow(index, n)
	default:
		f.end(Undecided, n)
	}
}

// much is by how many times one of two numbers is larger than the other, of which a third was made, if it counts as most of that.
const much = 16

// wrong chooses between two operands of a computation: of a pointer and an offset the offset, of two
// numbers the one that most of the result is made of.
func (f *follower) wrong(d flow.Definition, from []flow.Location) (k int, kind LinkKind, ok bool) {
	var v [2]uint64
	for i := range from {
		if v[i], ok = f.value(from[i], d.At); !ok {
			return 0, 0, false
		}
	}
	op := f.trace.Step(d.At).Inst.Op
	if k, ok = f.filled(op, v); ok {
		return k, Computed, true
	}
	switch first, second := f.points(v[0], d.At) && from[0].Size == 8, f.points(v[1], d.At) && from[1].Size == 8; {
	case first && second:
		return 0, 0, false
	case (op == "add" || op == "lea" || op == "sub") && first:
		return 1, Offset, true
	case (op == "add" || op == "lea") && second:
		return 0, Offset, true
	}
	if op != "add" && op != "lea" && op != "imul" && op != "sub" {
		return 0, 0, false
	}
	a, b := magnitude(v[0], from[0].Size), magnitude(v[1], from[1].Size)
	switch {
	case a/much > b:
		return 0, Computed, true
	case b/much > a:
		return 1, Computed, true
	}
	return 0, 0, false
}

// counted chooses of two numbers of a sum the one that a loop counts, if the other one stays as it is.
func (f *numbers) counted(d flow.Definition, from []flow.Location) (k int, ok bool) {
	switch f.trace.Step(d.At).Inst.Op {
	case "add", "sub", "lea":
	default:
		return 0, false
	}
	const rounds = 3
	_, first, _ := f.uncounted(from[0], d.At)
	_, second, _ := f.uncounted(from[1], d.At)
	switch {
	case first >= rounds && second == 0:
		return 0, true
	case second >= rounds && first == 0:
		return 1, true
	}
	return 0, false
}

func magnitude(v uint64, size int) uint64 {
	shift := 64 - 8*size
	if s := int64(v<<shift) >> shift; s < 0 {
		return uint64(-s)
	}
	return v
}

// led is the way of an address outside of an object, from the step that made it leave the object.
func (f *follower) led(n, k int, object *flow.Object) *Way {
	if f.depth == mostDepth {
		return nil
	}
	m := &f.trace.Step(n).Inst.Operands[k].Memory
	thread := f.trace.Step(n).Thread
	inside := func(v uint64) bool {
		return evidence.Addr(v) >= object.Addr && evidence.Addr(v) <= object.Addr+evidence.Addr(object.Size)
	}
	inner := f.inner()
	if entered := f.sized(n); entered >= 0 && inside(f.trace.Register(entered, x86.RDI)) {
		length := flow.Register(thread, x86.RDX, 8)
		inner.link(Offset, entered, length)
		inner.follow(length, entered)
		return inner.way
	}
	offset := x86.RegNone
	switch {
	case !m.Index.General():
	case !m.Base.General(), inside(f.trace.Register(n, m.Base)): // without a base the object's address is in the instruction
		offset = m.Index
	case m.Scale == 1 && inside(f.trace.Register(n, m.Index)):
		offset = m.Base
	}
	if offset.General() {
		inner.link(Offset, n, flow.Register(thread, offset, 8))
		inner.follow(flow.Register(thread, offset, 8), n)
		return inner.way
	}
	// Go back along the pointer to the addition that made it leave.
	l := flow.Register(thread, m.Base, 8)
	for range mostSteps {
		d := f.define(l, n)
		switch d.Kind {
		case flow.Copied:
			if d.Part.Space == transfer.Memory {
				inner.link(Stored, d.At, d.Part)
			}
			l, n = d.From[0], d.At
			continue
		case flow.Computed:
		default:
			return inner.way
		}
		next, ok := f.pointerOf(d)
		if !ok {
			return inner.way
		}
		if v, known := f.value(next, d.At); !known || !inside(v) {
			inner.counts = nil
			l, n = next, d.At
			continue
		}
		inner.counts = map[evidence.Addr][]int{}
		inner.leaving(d, next)
		return inner.way
	}
	return inner.way
}

// sized is where a function of the C library was entered that step n is in, if its third argument says how many bytes it stores; -1: it
// is no such function.
func (f *addresses) sized(n int) int {
	if !f.program.Foreign(f.trace.Step(n).PC) {
		return -1
	}
	call := f.ownCall(n)
	if call < 0 {
		return -1
	}
	entered := f.after(call)
	if entered < 0 {
		return -1
	}
	name := strings.TrimLeft(f.program.Function(f.trace.Step(entered).PC), "_")
	for _, base := range []string{"memcpy", "memmove", "mempcpy", "memset", "strncpy", "stpncpy", "strncat"} {
		if strings.HasPrefix(name, base) {
			return entered
		}
	}
	return -1
}

// leaving follows the offset of the addition that made a pointer leave its object.
func (f *follower) leaving(d flow.Definition, pointer flow.Location) {
	f.link(Offset, d.At, d.Part)
	for _, x := range f.operands(d) {
		if x != pointer {
			f.follow(x, d.At)
			return
		}
	}
	// A constant is added. In a loop its bound says how often.
	if list := f.repeats(d.At); len(list) >= 3 {
		f.counts[f.trace.Step(d.At).PC] = list
		if l, n, ok := f.bound(list); ok {
			f.follow(l, n)
			return
		}
	}
	f.end(Constant, d.At)
}
