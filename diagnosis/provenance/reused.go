package provenance

import (
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/debuginfo"
	"diagnose/image/value"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// Part is a part of a variable, or of what a pointer leads to, as code names it.
type Part struct {
	Name string
	// typ is the type of the part, of that of the innermost struct or union that has it; nil: it is in none. others are the types that it may
	// have instead, in a union.
	typ, of debuginfo.Type
	others  []debuginfo.Type
}

// Reuse is memory that code used as two objects: one stored something there, and another read it as a part of its own.
type Reuse struct {
	// Stored and Read name the memory, as the two places do.
	Stored, Read string
	// Given is where a value of the reader's kind was stored there before, and GivenBy the call of the function that did so; 0: it is not
	// known.
	Given, GivenBy evidence.Addr
}

// mostNamed bounds the accesses of a way of which it is asked which variables they are of.
const mostNamed = 64

// useSearch looks for the code that uses the memory on a way.
type useSearch struct{ *follower }

// reused ends the way at a store, d, to memory that step used reads as another object.
func (f *follower) reused(l flow.Location, used int, d flow.Definition) bool {
	if l.Space != transfer.Memory || l.Size > 8 || d.At < 0 || f.uses == mostNamed {
		return false
	}
	f.uses++
	u := useSearch{f}
	read := u.partAt(l, used)
	if read == nil || read.of == nil {
		return false
	}
	stored := u.partAt(d.Part, d.At)
	if stored == nil || !read.contradicts(stored) {
		return false
	}
	f.way.AccessPC, f.way.Reuse = f.ownPlace(used), &Reuse{Stored: stored.Name, Read: read.Name}
	if at := u.givenAt(l, d.At, read); at >= 0 {
		f.way.Reuse.Given = f.ownPlace(at)
		if call := u.callOf(at); call >= 0 {
			f.way.Reuse.GivenBy = f.trace.Step(call).PC
		}
	}
	f.end(Reused, d.At)
	return true
}

// partAt is the part that the program's own code accesses at a step; nil: it is not known.
func (u useSearch) partAt(l flow.Location, n int) *Part {
	s := u.trace.Step(n)
	if s.Inst == nil || s.Library || !u.program.Own(s.PC) {
		return nil
	}
	return u.program.Part(u.scopePoint(n), u.baseOf(l, n), l.Addr, l.Size)
}

// read is the part that the code at a step reads; nil: it is not known.
func (u useSearch) read(l flow.Location, n int) *Part {
	p := u.partAt(l, n)
	if s := u.trace.Step(n); p == nil && s.Inst != nil && !s.Library && u.program.Own(s.PC) {
		p = u.program.Part(u.scopePoint(n), 0, l.Addr, l.Size)
	}
	return p
}

// name is how the code at a step names memory that it reads; empty: it is not known.
func (u useSearch) name(l flow.Location, n int) string {
	if p := u.read(l, n); p != nil {
		return p.Name
	}
	return ""
}

// baseOf is the address from which the code reaches memory at a step: that in the base register; 0: it is not known, or is that of a frame.
func (u useSearch) baseOf(l flow.Location, n int) evidence.Addr {
	if base, ok := u.base(l, n); ok {
		return evidence.Addr(u.trace.Register(n, base))
	}
	return 0
}

// base is the register from which the code reaches memory at a step; ok is false if it is not known, or is that of a frame.
func (f *addresses) base(l flow.Location, n int) (r x86.Reg, ok bool) {
	s := f.trace.Step(n)
	if s.Inst == nil {
		return x86.RegNone, false
	}
	for k := range s.Inst.Operands {
		o := &s.Inst.Operands[k]
		if !o.IsMemory || !o.Memory.Base.General() || o.Memory.Base == x86.RSP {
			continue
		}
		if addr, known := f.trace.Address(n, k); known && l.Addr >= addr && l.Addr < addr+evidence.Addr(max(o.Size, 1)) {
			return o.Memory.Base, true
		}
	}
	return x86.RegNone, false
}

// givenAt is the last step before another that stored to memory a part of the same type as one that was read; none: it is not known.
func (u useSearch) givenAt(l flow.Location, before int, read *Part) int {
	const mostStores = 16
	for range mostStores {
		d := u.define(l, before)
		if d.At < 0 || d.At >= before {
			return none
		}
		if p := u.partAt(d.Part, d.At); p != nil && p.of != nil && plainName(p.of) == plainName(read.of) {
			return d.At
		}
		before = d.At
	}
	return none
}

// callOf is the step that called the function of a step; none: it is not in the trace.
func (u useSearch) callOf(n int) int {
	const (
		mostSteps = 1 << 20
		address   = 8 // bytes of a return address
	)
	thread, sp := u.trace.Step(n).Thread, u.trace.Register(n, x86.RSP)
	for k := n - 1; k >= max(0, n-mostSteps); k-- {
		s := u.trace.Step(k)
		if s.Thread == thread && !s.Library && s.Inst != nil && s.Inst.Flow == x86.FlowCall && u.trace.Register(k, x86.RSP) >= sp+address {
			return k
		}
	}
	return none
}

// contradicts reports whether two parts of one place cannot be of one object: they are of two structs, and one is a pointer, the other
// none or one to something else.
func (p *Part) contradicts(other *Part) bool {
	if p.of == nil || other.of == nil {
		return false
	}
	if a, b := plainName(p.of), plainName(other.of); a == "" || b == "" || a == b {
		return false
	}
	if p.member() == other.member() || p.ofItsOwn() && other.ofItsOwn() {
		return false // C code declares structs that begin alike, for lists of anything
	}
	for _, one := range append(p.others, p.typ) {
		for _, two := range append(other.others, other.typ) {
			if !conflict(one, two) {
				return false
			}
		}
	}
	return true
}

// conflict reports whether values of two types cannot be the same: one is a pointer, the other a number or a pointer to something else.
func conflict(one, two debuginfo.Type) bool {
	switch a, b := one.Kind() == debuginfo.KindPointer, two.Kind() == debuginfo.KindPointer; {
	case a && b:
		return differ(one.Elem(), two.Elem())
	case a:
		return numeric(two)
	case b:
		return numeric(one)
	}
	return false
}

// member is the last name in the part's.
func (p *Part) member() string {
	name, _, _ := strings.Cut(p.Name[strings.LastIndexAny(p.Name, ".>")+1:], "[")
	return name
}

// ofItsOwn reports whether the part is a pointer to what it is a part of.
func (p *Part) ofItsOwn() bool {
	return p.typ.Kind() == debuginfo.KindPointer && p.typ.Elem() != nil && plainName(p.typ.Elem()) == plainName(p.of)
}

// plainName is the name of a type without its qualifiers.
func plainName(t debuginfo.Type) string {
	return strings.TrimPrefix(strings.TrimPrefix(t.Name(), "const "), "volatile ")
}

// numeric reports whether a type is one of numbers that are no text.
func numeric(t debuginfo.Type) bool {
	switch t.Kind() {
	case debuginfo.KindBool, debuginfo.KindInt, debuginfo.KindUint, debuginfo.KindFloat, debuginfo.KindEnum:
		return t.Size() > 1
	}
	return false
}

// differ reports whether a pointer to one type is no pointer to another. One to void may be to anything.
func differ(one, two debuginfo.Type) bool {
	for _, t := range []debuginfo.Type{one, two} {
		if t == nil || t.Kind() == debuginfo.KindVoid || t.Kind() == debuginfo.KindUnknown {
			return false
		}
	}
	if one.Kind() != debuginfo.KindStruct || two.Kind() != debuginfo.KindStruct {
		return one.Kind() != two.Kind()
	}
	a, b := plainName(one), plainName(two)
	return a != b && a != "" && b != "" && !based(one, two, 0) && !based(two, one, 0)
}

// based reports whether a struct begins with another one.
func based(t, on debuginfo.Type, depth int) bool {
	if t.Kind() != debuginfo.KindStruct && t.Kind() != debuginfo.KindUnion || depth > mostNested {
		return false
	}
	for _, m := range t.Members() {
		if m.Type != nil && (m.Base || m.Offset == 0) && (plainName(m.Type) == plainName(on) || based(m.Type, on, depth+1)) {
			return true
		}
	}
	return false
}

// led makes the name one that a pointer leads to.
func (p *Part) led(pointer string) {
	if member, is := strings.CutPrefix(p.Name, pointer+"."); is {
		p.Name = pointer + "->" + member
	} else {
		p.Name = "*" + p.Name
	}
}

// partOf is the part at an offset of a variable, or of what a pointer leads to; nil: none with a name begins there.
func partOf(name string, t debuginfo.Type, offset int64, size int) *Part {
	path, leaf, ok := value.Path(t, offset, size)
	if !ok || leaf == nil {
		return nil
	}
	p := &Part{Name: name + path, typ: leaf}
	for range mostNested {
		switch t.Kind() {
		case debuginfo.KindArray:
			t, offset = t.Elem(), offset%max(t.Elem().Size(), 1)
			continue
		case debuginfo.KindUnion:
			p.inUnion(t)
		case debuginfo.KindStruct:
			p.of = t
			k := slices.IndexFunc(t.Members(), func(m debuginfo.Member) bool {
				return m.Type != nil && offset >= m.Offset && offset < m.Offset+m.Type.Size()
			})
			if k >= 0 {
				m := t.Members()[k]
				t, offset = m.Type, offset-m.Offset
				continue
			}
		}
		break
	}
	return p
}

// inUnion is for a part of a union: which of the members the code means is not known. Of structs that share memory nothing is.
func (p *Part) inUnion(t debuginfo.Type) {
	if plainName(t) != "" {
		p.of = t
	}
	for _, m := range t.Members() {
		switch {
		case m.Type == nil || m.Type.Kind() == debuginfo.KindStruct || m.Type.Kind() == debuginfo.KindUnion:
			p.of = nil
			return
		case m.Type.Kind() != debuginfo.KindArray:
			p.others = append(p.others, m.Type)
		}
	}
}
