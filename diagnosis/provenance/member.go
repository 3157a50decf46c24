package provenance

import (
	"slices"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/value"
	"diagnose/image/x86"
)

// beside ends the way at an access outside of the array of a struct that its code means. Of a heap object it is one inside of the object.
func (f *follower) beside(n, k int, addr evidence.Addr) bool {
	m, index := f.member(n, k)
	if m == nil {
		return false
	}
	o := &f.trace.Step(n).Inst.Operands[k]
	if addr >= m.Addr && addr < m.end() {
		return false // one that begins there and ends after it may be of two members at once
	}
	f.outsideMember(m, n, addr, o.Access.Writes())
	f.ledBy(index, n)
	return true
}

// outsideMember ends the way at step n, which accessed memory at an address outside of an array of a struct.
func (f *follower) outsideMember(m *Declared, n int, addr evidence.Addr, write bool) {
	w := f.way
	w.Object, w.Declared, w.Write, w.AccessPC, w.access = nil, m, write, f.ownPlace(n), n
	if w.Beyond = int64(addr) - int64(m.Addr); addr >= m.Addr {
		w.Beyond = int64(addr) - int64(m.end()) + 1
	}
	f.end(Outside, n)
}

// ledBy follows the number, as it is before step n, that led outside.
func (f *follower) ledBy(number flow.Location, n int) {
	if f.depth == mostDepth {
		return
	}
	inner := f.inner()
	inner.link(Offset, n, number)
	inner.follow(number, n)
	f.way.Led = inner.way
}

// member is the array of a struct that memory operand k of step n means, and the storage of its index. The operand has the start of the
// struct in one register, the index in the other, and the constant, if there is one, leads to the array. nil: there is no such array.
func (f *addresses) member(n, k int) (m *Declared, index flow.Location) {
	s := f.trace.Step(n)
	o := &s.Inst.Operands[k].Memory
	if !o.Base.General() || !o.Index.General() || o.Base == x86.RSP || o.Disp < 0 || o.Segment != x86.SegNone {
		return nil, index
	}
	for _, r := range [][2]x86.Reg{{o.Base, o.Index}, {o.Index, o.Base}} {
		start := evidence.Addr(f.trace.Register(n, r[0]))
		if start < low || r[0] == o.Index && o.Scale != 1 {
			continue
		}
		size, known := f.structAt(start, n)
		if !known || !f.program.Own(s.PC) {
			continue
		}
		index = flow.Register(s.Thread, r[1], 8)
		if m = f.program.Member(f.scopePoint(n), start, size, int64(o.Disp)); m != nil {
			return m, index
		}
		scale := int64(1)
		if r[1] == o.Index {
			scale = int64(max(o.Scale, 1))
		}
		if offset := int64(o.Disp) + scale*f.addedIndex(index, n); offset > int64(o.Disp) {
			if m = f.program.Member(f.scopePoint(n), start, size, offset); m != nil {
				return m, index
			}
		}
	}
	return nil, index
}

// addedIndex is the constant that was added to an index last, 0 if none was: code without optimisation adds the place of an array in its
// struct to the index, in elements.
func (f *addresses) addedIndex(index flow.Location, n int) (elements int64) {
	d := f.define(index, n)
	if d.Kind != flow.Computed || d.Part != index || len(values(d)) != 1 || f.trace.Step(d.At).Inst == nil {
		return 0
	}
	switch inst := f.trace.Step(d.At).Inst; inst.Op {
	case "add":
		if k, constant := constantOperand(inst); constant {
			return int64(k)
		}
	case "lea":
		if times, displacement, one := scaled(inst); one && times == 1 {
			return displacement
		}
	}
	return 0
}

// structAt reports whether a struct may begin at an address, before step n: a heap object, whose size it is, or other memory, with a size of 0.
func (f *addresses) structAt(start evidence.Addr, n int) (size uint64, ok bool) {
	object := f.trace.ObjectAt(start, n)
	if object == nil {
		return 0, f.program.Mapped(start)
	}
	return object.Size, object.Addr == start && (object.Freed < 0 || object.Freed >= n) && !object.Mapped()
}

// scopePoint is where the program was before step n.
func (f *addresses) scopePoint(n int) *ScopePoint {
	return &ScopePoint{PC: f.trace.Step(n).PC, Register: func(r x86.Reg) uint64 { return f.trace.Register(n, r) },
		Word: func(a evidence.Addr) (uint64, bool) { return f.value(flow.Memory(a, 8), n) }}
}

// overran replaces the end of a way at a word of a heap object that several steps wrote in parts by the first access outside of an array of
// that object, before step n. What the program does from there on is not defined.
func (f *follower) overran(l flow.Location, n int) {
	object := f.trace.ObjectAt(l.Addr, n)
	if object == nil || object.Mapped() {
		return
	}
	const most = 100_000 // accesses of the object
	for at, looked := max(object.Made, 0), 0; at < n && looked < most; at++ {
		s := f.trace.Step(at)
		if s.Inst == nil || s.Library {
			continue
		}
		for k := range s.Inst.Operands {
			o := &s.Inst.Operands[k]
			if !accessesMemory(o) {
				continue
			}
			addr, known := f.trace.Address(at, k)
			if !known || addr < object.Addr || addr >= object.Addr+evidence.Addr(object.Size) {
				continue
			}
			if looked++; f.beside(at, k, addr) {
				return
			}
		}
	}
}

// ScopePoint is a place of the program with a thread's registers there, and the words of memory that are known.
type ScopePoint struct {
	PC       evidence.Addr
	Register func(x86.Reg) uint64
	Word     func(evidence.Addr) (uint64, bool)
}

// memberAt is a question to Member.
type memberAt struct {
	pc, start evidence.Addr
	offset    int64
}

// mostMembers bounds the answers of Member that are kept.
const mostMembers = 1 << 16

// Member implements Program.
func (i *Image) Member(at *ScopePoint, start evidence.Addr, size uint64, offset int64) *Declared {
	key := memberAt{at.PC, start, offset}
	m, known := i.members[key]
	if !known {
		m = i.findMember(at, start, size, offset)
		if len(i.members) < mostMembers {
			i.members[key] = m
		}
	}
	return m
}

func (i *Image) findMember(at *ScopePoint, start evidence.Addr, size uint64, offset int64) (found *Declared) {
	for _, v := range i.pointersAt(at) {
		target := v.Type.Elem()
		if offset == 0 && (target == nil || target.Kind() != debuginfo.KindStruct) && v.mayLead(start, size) {
			return nil // the code may mean all of the memory, and not the first member
		}
		if target == nil || !v.leads(start, size) || target.Kind() != debuginfo.KindStruct || target.Size() <= offset || size > 0 && uint64(target.Size()) > size {
			continue // it says nothing of this memory
		}
		name, array := arrayAt(target, offset, 0)
		if array == nil || offset+array.Size() == target.Size() && size != uint64(target.Size()) {
			return nil // it may be meant to have more elements than declared
		}
		if bytes := uint64(array.Size()); found == nil || found.Size < bytes {
			found = &Declared{Name: v.Name + "->" + name, Addr: start + evidence.Addr(offset), Size: bytes, Member: true}
		}
	}
	return found
}

// Elements implements Program. Code that goes through bytes may mean all of the struct, whatever its first member is.
func (i *Image) Elements(at *ScopePoint, v *Declared) (found *Declared) {
	if v.typ == nil || v.typ.Kind() != debuginfo.KindStruct {
		return nil
	}
	name, array := arrayAt(v.typ, 0, 0)
	if array == nil || array.Elem() == nil || array.Elem().Size() <= 1 {
		return nil
	}
	for _, p := range i.pointersAt(at) {
		switch target := p.Type.Elem(); {
		case !p.mayLead(v.Addr, v.Size):
		case target == nil || target.Kind() != array.Elem().Kind() || target.Size() != array.Elem().Size():
			return nil // the code may mean something else there
		case p.leads(v.Addr, v.Size):
			found = &Declared{Name: v.Name + "." + name, Addr: v.Addr, Size: uint64(array.Size()), Member: true}
		}
	}
	return found
}

// scopedVariable is a variable in scope at a place.
type scopedVariable struct {
	debuginfo.Variable
	at    *ScopePoint
	frame *value.Frame
}

// pointersAt are the pointer variables in scope at a place; none if they are not all known.
func (i *Image) pointersAt(at *ScopePoint) []scopedVariable {
	return slices.DeleteFunc(i.variablesAt(at), func(v scopedVariable) bool { return v.Type.Kind() != debuginfo.KindPointer })
}

// variablesAt are the variables in scope at a place; none if they are not all known.
func (i *Image) variablesAt(at *ScopePoint) (list []scopedVariable) {
	module := i.process.ModuleAt(at.PC)
	if module == nil {
		return nil
	}
	info, err := module.Debug()
	if err != nil || info == nil {
		return nil
	}
	calls, err := info.CallsAt(module.LinkAddr(at.PC))
	frame := i.frame(at.PC, at.Register, module)
	if err != nil || frame == nil {
		return nil
	}
	for _, call := range calls {
		vars, err := info.VariablesAt(call, module.LinkAddr(at.PC))
		if err != nil {
			return nil
		}
		for _, v := range vars {
			if v.Type != nil {
				list = append(list, scopedVariable{v, at, frame})
			}
		}
	}
	return list
}

// leads reports whether a pointer variable leads to memory with a start and a size. Optimised code may keep the pointer where the debug
// information does not say; then the size of what it points to has to be the memory's.
func (p *scopedVariable) leads(addr evidence.Addr, size uint64) bool {
	l, err := value.Lives(p.frame, p.Variable)
	if err != nil {
		return uint64(p.Type.Elem().Size()) == size
	}
	got, known := p.word(l)
	return known && got == uint64(addr)
}

// word is the value of a variable that lives at a place and has the size of a pointer.
func (p *scopedVariable) word(l value.Location) (got uint64, known bool) {
	switch {
	case l.InRegister:
		return p.frame.Registers.Get(l.Register)
	case l.InMemory:
		return p.at.Word(l.Addr)
	}
	return 0, false
}

// mayLead reports whether a pointer variable leads to memory, as far as it is known where the variable is.
func (p *scopedVariable) mayLead(addr evidence.Addr, size uint64) bool {
	_, err := value.Lives(p.frame, p.Variable)
	return err != nil || p.leads(addr, size)
}

// mostNested bounds how deep structs are looked into.
const mostNested = 8

// arrayAt is the outermost array of a struct that begins at an offset, with its name; nil: there is none, it is in a union, or it has no fixed
// number of elements.
func arrayAt(t debuginfo.Type, offset int64, depth int) (name string, array debuginfo.Type) {
	for _, m := range t.Members() {
		if m.Type == nil || m.BitSize > 0 || offset < m.Offset || offset >= m.Offset+m.Type.Size() {
			continue
		}
		switch m.Type.Kind() {
		case debuginfo.KindArray:
			if offset == m.Offset && m.Type.Count() > 1 {
				return m.Name, m.Type
			}
		case debuginfo.KindStruct:
			if depth == mostNested {
				return "", nil
			}
			name, array = arrayAt(m.Type, offset-m.Offset, depth+1)
			if m.Name != "" && !m.Base {
				name = m.Name + "." + name
			}
			return name, array
		}
		return "", nil
	}
	return "", nil
}

// frame is that of a function at a place; nil: its start is not known.
func (i *Image) frame(pc evidence.Addr, register func(x86.Reg) uint64, module *image.Module) *value.Frame {
	t := image.Thread{}
	for r := x86.RAX; r.General(); r++ {
		t.Registers.Set(image.Register(r), register(r))
	}
	t.Registers.Set(image.RIP, uint64(pc))
	frames := i.unwinder.Walk(&t, 1).Frames
	if len(frames) == 0 {
		return nil
	}
	return &value.Frame{Process: i.process, Module: module, Thread: &t, Registers: t.Registers, CFA: frames[0].CFA}
}
