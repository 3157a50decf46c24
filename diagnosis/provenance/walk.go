package provenance

import (
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// Program says of the program what a trace does not have.
type Program interface {
	// Own reports whether code is the program's own, and not a library's or the compiler's.
	Own(pc evidence.Addr) bool
	// Foreign reports whether code is that of a runtime library, whose insides say nothing about the program.
	Foreign(pc evidence.Addr) bool
	// Code reports whether an address is in executable memory.
	Code(addr evidence.Addr) bool
	// Mapped reports whether an address is in memory of the process.
	Mapped(addr evidence.Addr) bool
	// OfStart reports whether an address is in the texts of the program's arguments and environment.
	OfStart(addr evidence.Addr) bool
	// Decode returns the instruction at an address; ok is false if there is none.
	Decode(pc evidence.Addr) (inst *x86.Inst, ok bool)
	// OfTemplate reports whether code is that of a function which the compiler made of a template of the C++ library.
	OfTemplate(pc evidence.Addr) bool
	// OfVector reports whether code is that of a member function of std::vector, inlined or not.
	OfVector(pc evidence.Addr) bool
	// Function names the function at a place; empty: it is not known.
	Function(pc evidence.Addr) string
	// Static is the variable with static storage that begins at an address; nil: none is known.
	Static(addr evidence.Addr) *Declared
	// Declared is the variable in scope at a place of the program that begins at an address; nil: none is known.
	Declared(pc evidence.Addr, register func(x86.Reg) uint64, addr evidence.Addr) *Declared
	// Member is the array that begins at an offset of the struct at an address, if a pointer variable in scope leads to it; nil: there is none,
	// or it may have more elements than it declares. size is that of the heap object that begins there, 0 for other memory.
	Member(at *ScopePoint, start evidence.Addr, size uint64, offset int64) *Declared
	// Elements is the array that is the first member of a variable, if each pointer variable in scope that may lead there is one to elements of
	// such an array, and one does; nil: the code may mean all of the variable.
	Elements(at *ScopePoint, v *Declared) *Declared
	// Field is the array, other than the last member, that begins at an address in a struct: one to whose start, base, a pointer variable in
	// scope leads, or a variable in scope; nil: none is known.
	Field(at *ScopePoint, base, addr evidence.Addr) *Declared
	// Part is the part of a variable in scope, or of what a pointer variable in scope leads to, that has size bytes at an address; nil: none
	// is known. base is the pointer's value; 0: it may be any.
	Part(at *ScopePoint, base, addr evidence.Addr, size int) *Part
	// StaticPart is the part of a variable with static storage that has size bytes at an address; nil: none is known.
	StaticPart(addr evidence.Addr, size int) *Part
}

// Failing follows the value that the failing instruction, step n, could not use. ok is false if the
// instruction reads no such value, or n is negative.
func Failing(t *flow.Trace, p Program, n int) (w *Way, ok bool) {
	if n < 0 {
		return nil, false
	}
	s := t.Step(n)
	f := newFollower(t, p)
	if s.Inst == nil || !p.Code(s.PC) {
		return f.target(t.Previous(n))
	}
	if f.refused(n) {
		return f.target(n)
	}
	switch s.Inst.Op {
	case "div", "idiv":
		if place := divisor(s.Inst); place.Size > 0 {
			f.follow(f.located(n, place), n)
			return f.way, true
		}
	}
	k := accessed(s.Inst)
	if k < 0 {
		return nil, false
	}
	if !f.access(n, k) {
		f.address(n, k)
		return f.way, true
	}
	f.way.Failing = f.way.AccessPC == f.ownPlace(n)
	return f.way, true
}

// Index follows the index by which the code at pc last reached an address outside of a variable of size bytes at from, up to step n of its thread. It
// is nil if the code did not, in the last mostSteps steps of the thread.
func Index(t *flow.Trace, p Program, n int, pc, addr, from evidence.Addr, size uint64) *Way {
	for at, looked := n, 0; at >= 0 && looked < mostSteps; at, looked = t.Previous(at), looked+1 {
		s := t.Step(at)
		if s.PC != pc || s.Inst == nil {
			continue
		}
		for k := range s.Inst.Operands {
			if o := &s.Inst.Operands[k]; !o.IsMemory || o.Implicit {
				continue
			}
			if l, known := t.Extent(at, k); known && l.Addr == addr {
				f := newFollower(t, p)
				return f.led(at, k, &flow.Object{Addr: from, Size: size, Freed: -1})
			}
		}
	}
	return nil
}

// Damaged follows memory that should not have been written: from the last store to it up to step n to what led that store there.
func Damaged(t *flow.Trace, p Program, n int, addr evidence.Addr, size int) (w *Way, ok bool) {
	if n < 0 {
		return nil, false
	}
	f := newFollower(t, p)
	d := t.Define(flow.Memory(addr, size), n+1)
	if d.At < 0 || t.Step(d.At).Library {
		return nil, false
	}
	for k := range t.Step(d.At).Inst.Operands {
		o := &t.Step(d.At).Inst.Operands[k]
		if o.IsMemory && o.Access.Writes() && f.access(d.At, k) {
			return f.way, true
		}
	}
	return nil, false
}

// Value follows bytes, as they are before step n.
func Value(t *flow.Trace, p Program, l flow.Location, n int) *Way {
	f := newFollower(t, p)
	f.follow(l, n)
	return f.way
}

func divisor(inst *x86.Inst) transfer.Place {
	o := &inst.Operands[0]
	switch {
	case o.IsMemory:
		return transfer.Place{Space: transfer.Memory, Size: o.Size}
	case o.Reg.General():
		return transfer.Place{Space: transfer.General, Num: uint8(o.Reg), Size: o.Size}
	}
	return transfer.Place{}
}

// follower makes a way.
type follower struct {
	addresses
	way *Way
	// counts are the steps at which an instruction made the value, by its address.
	counts map[evidence.Addr][]int
	// depth bounds the ways within ways.
	depth int
	// used is the value that the way began with, or of the operand that it has followed since; nil: it is not known.
	used *uint64
	// outsides are the first accesses outside of objects.
	outsides map[*flow.Object]*outsideAccess
	// derivations are the objects that pointers were derived from, by their definitions.
	derivations map[derivation]*flow.Object
	// start is the step at which the way began.
	start int
	// past: the first value is followed past a branch that found it to be 0.
	past bool
	// bits are those of the value that count: code took them out of a word, which may hold other numbers as well.
	bits uint64
	// held is the memory that the value went through since it was last computed, with the steps of the stores.
	held map[flow.Location]int
	// pieced is the step that made the last part of a word that was copied byte by byte; 0: none was.
	pieced int
	// uses counts the accesses of which it was asked which variables they are of.
	uses int
	memo pointerMemo
}

// steps tells what the steps of a trace did: which gave bytes their value, and which that was.
type steps struct {
	trace   *flow.Trace
	program Program
}

// numbers tells how numbers were made: counted, taken apart and put together.
type numbers struct{ steps }

// addresses tells what addresses were made of, and which memory they are of.
type addresses struct{ numbers }

func newFollower(t *flow.Trace, p Program) *follower {
	return &follower{addresses: addresses{numbers{steps{t, p}}}, way: &Way{}}
}

// inner makes a way within this one.
func (f *follower) inner() *follower {
	inner := newFollower(f.trace, f.program)
	inner.depth = f.depth + 1
	return inner
}

// continueOn ends the way as an inner one does, after the links so far.
func (f *follower) continueOn(w *Way) {
	w.Links, w.Overtaken = append(f.way.Links, w.Links...), append(f.way.Overtaken, w.Overtaken...)
	*f.way = *w
}

// The bounds of a way.
const (
	mostSteps = 100_000 // definitions
	mostLinks = 64
	mostDepth = 3
	recent    = 4 // links
)

// located is the storage of a place when step n is executed.
func (f *steps) located(n int, p transfer.Place) flow.Location {
	if p.Space == transfer.Memory {
		addr, _ := f.trace.Address(n, int(p.Num))
		return flow.Memory(addr+evidence.Addr(p.Off), p.Size)
	}
	return flow.Location{Thread: f.trace.Step(n).Thread, Space: p.Space, Num: p.Num, Off: p.Off, Size: p.Size}
}

// end ends the way.
func (f *follower) end(kind EndKind, n int) {
	f.way.End = kind
	if n >= 0 {
		f.way.PC = f.ownPlace(n)
	}
}

// link adds a link, once for the same code a few links before.
func (f *follower) link(kind LinkKind, n int, to flow.Location) {
	pc := f.trace.Step(n).PC
	if !f.program.Own(pc) {
		if kind != Stored && kind != Again {
			return
		}
		if pc = f.ownPlace(n); pc == 0 {
			return
		}
	}
	// A loop makes the same links again and again.
	for k := len(f.way.Links) - 1; k >= max(0, len(f.way.Links)-recent); k-- {
		if f.way.Links[k].PC == pc && f.way.Links[k].Kind == kind {
			f.way.Links[k].Times++
			return
		}
	}
	if len(f.way.Links) == mostLinks {
		return
	}
	l := Link{Kind: kind, PC: pc, Times: 1, at: n, to: to}
	l.Value, l.Known = f.value(to, n+1)
	f.way.Links = append(f.way.Links, l)
}

// follow goes back from bytes as they are before step n.
func (f *follower) follow(l flow.Location, n int) {
	f.counts, f.start, f.bits = map[evidence.Addr][]int{}, n, allBits
	for i := range mostSteps {
		if v, known := f.value(l, n); known && len(f.counts) == 0 {
			f.used = &v
		}
		d := f.trace.Define(l, n)
		var more bool
		if branch := f.implied(l, n, d); branch >= 0 && (i > 0 || !f.past) {
			f.found0(l, n, branch)
			return
		}
		if f.contradicted(l, n, d) {
			f.end(Undecided, n)
			return
		}
		if l.Space == transfer.Memory && d.At >= 0 && d.Part.Size < min(l.Size, 8) && l.Size >= 4 && !f.fills(d.At) {
			if f.unset(d, n) || f.reused(l, n, d) {
				return
			}
			if l, n, more = f.pieces(l, n, d); !more {
				return
			}
			continue
		}
		if f.wholeWord(l, d) {
			f.pieced = 0
		}
		f.throughCalls(l, n, d)
		if d.Part != l {
			f.bits = allBits
		}
		if f.reused(l, n, d) {
			return
		}
		if l, n, more = f.step(d, n); !more {
			return
		}
	}
	f.end(Undecided, n)
}

// step takes one definition; more: the way continues at l, as it is before step n.
func (f *follower) step(d flow.Definition, used int) (l flow.Location, n int, more bool) {
	f.way.Call = d.Call
	f.overtaken(d, used)
	if d.Part.Space == transfer.Memory && (d.Kind == flow.Before || d.Kind == flow.Allocated || d.Call == "calloc") && f.misled(used) {
		return l, 0, false
	}
	switch d.Kind {
	case flow.Before:
		if f.unset(d, used) {
			return l, 0, false
		}
		if f.pieced > 0 {
			f.end(Pieces, f.pieced) // text of the program's start is no value of a word
			return l, 0, false
		}
		f.way.AccessPC, f.way.From, f.way.ReadPC = f.ownPlace(used), d.Part, f.trace.Step(used).PC
		if v, known := f.loaded(d.Part, used); known {
			f.way.Value = &v
		}
		f.end(Initial, -1)
		f.chosen(d.Part, used)
		return l, 0, false
	case flow.Input:
		f.end(Input, d.At)
		return l, 0, false
	case flow.Result:
		f.way.Object = f.trace.ObjectMade(d.At)
		f.end(Returned, d.At)
		return l, 0, false
	case flow.Allocated, flow.Freed:
		f.way.Object = f.trace.ObjectAt(d.Part.Addr, d.At+1)
		f.unsetBy(d, used)
		return l, 0, false
	case flow.Unknown:
		f.end(Undecided, d.At)
		return l, 0, false
	}
	if f.unset(d, used) {
		return l, 0, false
	}
	if d.Part.Space == transfer.Memory && !f.trace.Step(d.At).Library {
		f.link(Stored, d.At, d.Part)
		if n := len(f.way.Links); n > 0 && f.way.Links[n-1].at == d.At {
			f.way.Links[n-1].Handed = f.wholeWord(d.Part, d)
		}
		f.restored(d)
	}
	if f.broken(d) {
		return l, 0, false
	}
	switch {
	case d.Kind == flow.Constant && d.Call == "calloc":
		f.way.AccessPC = f.ownPlace(used)
		f.end(Zeroed, d.At)
		f.chosen(d.Part, used)
		return l, 0, false
	case d.Kind == flow.Constant:
		if v, known := immediate(f.trace.Step(d.At).Inst, d.Part.Size); known {
			f.way.Value = &v
		}
		f.end(Constant, d.At)
		return l, 0, false
	case d.Kind == flow.Copied:
		if d.From[0].Off != d.Part.Off {
			f.bits = allBits
		}
		return d.From[0], d.At, true
	}
	f.held = nil
	if l, n, more = f.computed(d); more {
		f.bits = f.countedBits(d, l, f.bits)
	}
	return l, n, more
}

// misled continues with the pointer by which step used read memory that the program had not stored to, if a part of the pointer had been
// overwritten, or it had come by an access that broke a rule.
func (f *follower) misled(used int) bool {
	s := f.trace.Step(used)
	if f.depth == mostDepth || s.Inst == nil || s.Library {
		return false
	}
	k := slices.IndexFunc(s.Inst.Operands, func(o x86.Operand) bool {
		return o.IsMemory && o.Access.Reads() && o.Memory.Base.General() && o.Memory.Base != x86.RSP
	})
	if k < 0 {
		return false
	}
	inner := f.inner()
	if inner.follow(flow.Register(s.Thread, s.Inst.Operands[k].Memory.Base, 8), used); inner.way.End != Pieces && !inner.way.Broke() {
		return false
	}
	f.continueOn(inner.way)
	return true
}

// wholeWord reports whether a register of the program's own code was stored to all of some memory, so that it has a value of that size.
func (f *steps) wholeWord(l flow.Location, d flow.Definition) bool {
	if l.Space != transfer.Memory || d.At < 0 || d.Kind != flow.Copied || d.Part != l || d.From[0].Space != transfer.General {
		return false
	}
	s := f.trace.Step(d.At)
	return !s.Library && s.Inst.Op == "mov" && f.program.Own(s.PC)
}

// overtaken notes memory that step used read, if the last store there is a later one, of another thread.
func (f *follower) overtaken(d flow.Definition, used int) {
	const most = 8
	l, n := d.Part, f.trace.Len()
	if f.trace.Threads() < 2 || l.Space != transfer.Memory || l.Size > 8 || len(f.way.Overtaken) == most || f.onStack(l.Addr, used) {
		return
	}
	last := f.trace.Define(l, n)
	stored := last.Kind == flow.Copied || last.Kind == flow.Constant || last.Kind == flow.Computed
	if last.At <= used || !stored || f.trace.Step(last.At).Thread == f.trace.Step(used).Thread || f.trace.ObjectAt(l.Addr, used) != f.trace.ObjectAt(l.Addr, last.At) {
		return
	}
	f.way.Overtaken = append(f.way.Overtaken, l)
}

// fills reports whether a step is one of a string instruction that stores one register again and again: its parts are one store.
func (f *steps) fills(n int) bool {
	inst := f.trace.Step(n).Inst
	return inst != nil && strings.HasPrefix(inst.Op, "stos")
}

// broken ends the way at an access of the step that broke a rule.
func (f *follower) broken(d flow.Definition) bool {
	s := f.trace.Step(d.At)
	if s.Inst == nil {
		return false
	}
	for k := range s.Inst.Operands {
		if accessesMemory(&s.Inst.Operands[k]) && f.access(d.At, k) {
			return true
		}
	}
	return f.overfilled(d)
}

// unset ends the way at memory of a stack whose frame has returned between the store of its value and its use; or at memory
// of a frame that has returned and was never stored to.
func (f *follower) unset(d flow.Definition, used int) bool {
	if d.Part.Space != transfer.Memory || !f.onStack(d.Part.Addr, used) {
		return false
	}
	if d.At >= 0 && f.trace.Step(d.At).Thread != f.trace.Step(used).Thread {
		return false
	}
	if addr := uint64(d.Part.Addr); f.trace.FirstReturn(f.trace.Step(used).Thread, d.At, used+1, addr+1, addr+mostStack) < 0 {
		return false // no frame with that address was left
	}
	f.unsetBy(d, used)
	return true
}

// onStack reports whether an address is in the part of the stack that the thread has used at a step.
func (f *steps) onStack(addr evidence.Addr, n int) bool {
	const red = 128 // bytes below the stack pointer that a leaf function uses (System V ABI, 3.2.2)
	low := f.trace.Register(n, x86.RSP) - red
	return uint64(addr) >= low && uint64(addr)-low < mostStack
}

// mostStack is the size that a stack usually has at most (RLIMIT_STACK).
const mostStack = 8 << 20

// computed chooses the operand to follow.
func (f *follower) computed(d flow.Definition) (l flow.Location, n int, more bool) {
	pc := f.trace.Step(d.At).PC
	if f.program.Foreign(pc) {
		f.returned(d.At)
		return l, 0, false
	}
	f.counts[pc] = append(f.counts[pc], d.At)
	from := f.operands(d)
	if list := f.counts[pc]; len(list) >= 3 {
		if l, n, ok := f.bound(list); ok {
			return l, n, true
		}
		if len(from) == 1 && f.looped(list, d.Part) {
			return l, 0, false
		}
	}
	switch len(from) {
	case 0:
		if made := values(d); len(made) == 1 {
			f.link(Computed, d.At, d.Part)
			return made[0], d.At, true
		}
		f.end(Constant, d.At)
		return l, 0, false
	case 1:
		if v, mostly := f.mostlyConstant(d, from[0]); mostly {
			f.way.Value = &v
			f.end(Constant, d.At)
			return l, 0, false
		}
		if !extends(f.trace.Step(d.At).Inst) {
			f.link(Computed, d.At, d.Part)
		}
		return from[0], d.At, true
	case 2:
		if l, n, ok := f.common(from, d.At); ok {
			f.link(Computed, d.At, d.Part)
			return l, n, true
		}
		k, kind, ok := f.wrong(d, from)
		if !ok {
			kind = Computed
			k, ok = f.counted(d, from)
		}
		if ok {
			f.link(kind, d.At, d.Part)
			return from[k], d.At, true
		}
	}
	f.link(Computed, d.At, d.Part)
	if len(from) != 2 {
		f.end(Undecided, d.At)
	} else if !f.either(from, d.At) {
		f.end(Undecided, d.At)
		f.way.parts, f.way.whole, f.way.partsAt = from, d.Part, d.At
	}
	return l, 0, false
}

// extends reports whether an instruction gives a number more bytes, and no other value.
func extends(inst *x86.Inst) bool {
	switch inst.Op {
	case "movsx", "movsxd", "cbw", "cwde", "cdqe":
		return true
	}
	return false
}

// mostlyConstant reports whether a step made the most of a number by adding a constant of the code to another one. Addresses are larger than
// the numbers that this is asked of: a constant may lead from a bad pointer to a member.
func (f *steps) mostlyConstant(d flow.Definition, from flow.Location) (v uint64, mostly bool) {
	const number = 4
	inst := f.trace.Step(d.At).Inst
	if d.Part.Size > number || !increments(inst) {
		return 0, false
	}
	before, known := f.value(from, d.At)
	v, also := f.value(d.Part, d.At+1)
	if !known || !also {
		return 0, false
	}
	before = low64(before, d.Part.Size)
	return v, magnitude(v-before, d.Part.Size)/much > magnitude(before, d.Part.Size)
}

// either follows both operands of step n, and continues on the way that ends at an access that broke a rule, if the other way does not;
// or on the first, if the system gave the program both.
func (f *follower) either(from []flow.Location, n int) bool {
	if f.depth == mostDepth {
		return false
	}
	var ways [2]*Way
	for i, l := range from {
		inner := f.inner()
		inner.follow(l, n)
		ways[i] = inner.way
	}
	next := ways[0]
	switch first, second := ways[0].Broke(), ways[1].Broke(); {
	case second && !first:
		next = ways[1]
	case first != second, ways[0].End == Input && ways[1].End == Input:
	default:
		return false
	}
	f.continueOn(next)
	return true
}

// common is the value of which both operands were made by copies and by computations with constants: the way continues
// there, whichever of the two it takes.
func (f *steps) common(from []flow.Location, n int) (l flow.Location, at int, ok bool) {
	type place struct {
		l flow.Location
		n int
	}
	var first []place
	for k := range from {
		x := place{from[k], n}
		for range 32 {
			d := f.define(x.l, x.n)
			if k == 0 {
				first = append(first, place{d.Part, d.At})
			} else if slices.ContainsFunc(first, func(y place) bool { return y.n == d.At && d.At >= 0 && y.l == d.Part }) {
				return x.l, x.n, true
			}
			operands := f.operands(d)
			if len(operands) != 1 {
				break
			}
			x = place{operands[0], d.At}
		}
	}
	return l, 0, false
}

// operands are the bytes of which a step made others, without flags and constants.
func (f *steps) operands(d flow.Definition) (list []flow.Location) {
	list = values(d)
	if d.Kind == flow.Copied {
		return list
	}
	return slices.DeleteFunc(list, func(x flow.Location) bool { return f.constant(x, d.At) })
}

// values are the bytes of which a step made others, without flags.
func values(d flow.Definition) (list []flow.Location) {
	for _, x := range d.From {
		if x.Space != transfer.Flag {
			list = append(list, x)
		}
	}
	return list
}

// constant reports whether bytes of a register are those of an instruction.
func (f *steps) constant(l flow.Location, n int) bool {
	for l.Space != transfer.Memory {
		d := f.trace.Define(l, n)
		switch d.Kind {
		case flow.Constant:
			return true
		case flow.Copied:
			l, n = d.From[0], d.At
		default:
			return false
		}
	}
	return false
}

// returned ends the way at the call by which the program's own code entered a library.
func (f *follower) returned(n int) {
	f.end(Returned, n)
	f.way.Call = f.program.Function(f.trace.Step(n).PC)
	if call := f.ownCall(n); call >= 0 {
		f.way.PC = f.trace.Step(call).PC
		if entered := f.after(call); entered >= 0 {
			if name := f.program.Function(f.trace.Step(entered).PC); name != "" {
				f.way.Call = name
			}
			f.converted(entered)
		}
	}
	if strings.HasPrefix(strings.TrimLeft(f.way.Call, "_"), "memset") && f.used != nil && filler(*f.used) {
		f.way.End = Pieces
	}
}

// filler reports whether a word consists of one byte again and again, and is no number that such a fill is to make: neither 0 nor -1.
func filler(v uint64) bool {
	const every = 0x0101010101010101
	return v == v&0xff*every && v != 0 && v != ^uint64(0)
}

// after is the step of the same thread that follows a call, past the jumps of procedure linkage tables.
func (f *steps) after(call int) int {
	sp := f.trace.Register(call, x86.RSP)
	if f.trace.Step(call).Inst.Flow == x86.FlowCall {
		sp -= 8
	}
	for n := f.trace.Next(call); n >= 0 && n < call+mostSteps; n = f.trace.Next(n) {
		s := f.trace.Step(n)
		if s.Library || f.trace.Register(n, x86.RSP) != sp {
			return -1
		}
		if s.Inst != nil && s.Inst.Flow != x86.FlowJump && s.Inst.Op != "endbr64" {
			return n
		}
	}
	return -1
}

// ownCall is the last call of the program's own code that step n is in, itself if it is the program's own; -1: none.
func (f *steps) ownCall(n int) int { return f.callOf(n, f.program.Own) }

// callOf is ownCall for some code.
func (f *steps) callOf(n int, code func(evidence.Addr) bool) int {
	// The frames between are passed by the stack pointer: code that a step is in was called with a higher one.
	sp := f.trace.Register(n, x86.RSP)
	for at := n; at >= 0; at = f.trace.Previous(at) {
		s := f.trace.Step(at)
		if f.trace.Register(at, x86.RSP) < sp {
			continue
		}
		if s.Inst != nil && code(s.PC) && (at == n || s.Inst.Flow == x86.FlowCall || s.Inst.Flow == x86.FlowJump) {
			return at
		}
		sp = max(sp, f.trace.Register(at, x86.RSP))
	}
	return -1
}

// ownPlace is the program's own instruction of a step, or the call through which it came there; 0: none.
func (f *steps) ownPlace(n int) evidence.Addr {
	if n < 0 {
		return 0
	}
	if f.trace.Step(n).Library {
		if n = f.trace.Previous(n); n < 0 {
			return 0
		}
	}
	if call := f.ownCall(n); call >= 0 {
		return f.trace.Step(call).PC
	}
	return 0
}
