package provenance

import (
	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/value"
	"diagnose/image/x86"
)

// beside ends the way at an access outside of the array of a struct that its code means, and inside of the heap object that the
// struct is.
func (f *follower) beside(n, k int, addr evidence.Addr) bool {
	m, index := f.member(n, k)
	if m == nil {
		return false
	}
	o := &f.trace.Step(n).Inst.Operands[k]
	if addr >= m.Addr && addr < m.end() {
		return false // one that begins there and ends after it may be of two members at once
	}
	w := f.way
	w.Object, w.Declared, w.Write, w.AccessPC, w.access = nil, m, o.Access.Writes(), f.ownPlace(n), n
	if w.Beyond = int64(addr) - int64(m.Addr); addr >= m.Addr {
		w.Beyond = int64(addr) - int64(m.end()) + 1
	}
	f.end(Outside, n)
	if f.depth < mostDepth {
		inner := f.inner()
		inner.link(Offset, n, index)
		inner.follow(index, n)
		w.Led = inner.way
	}
	return true
}

// member is the array of a struct that memory operand k of step n means, and the storage of its index. The operand has the start of a
// heap object in one register, the index in the other, and the constant, if there is one, leads to the array. nil: there is no such array.
func (f *follower) member(n, k int) (m *Declared, index flow.Location) {
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
		object := f.trace.ObjectAt(start, n)
		if object == nil || object.Addr != start || object.Freed >= 0 && object.Freed < n || object.Mapped() || !f.program.Own(s.PC) {
			continue
		}
		at := ScopePoint{PC: s.PC, Register: func(r x86.Reg) uint64 { return f.trace.Register(n, r) },
			Word: func(a evidence.Addr) (uint64, bool) { return f.value(flow.Memory(a, 8), n) }}
		if m = f.program.Member(&at, object, int64(o.Disp)); m != nil {
			return m, flow.Register(s.Thread, r[1], 8)
		}
	}
	return nil, index
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
			if !o.IsMemory || o.Access == "" || o.Implicit {
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
	pc, object evidence.Addr
	offset     int64
}

// mostMembers bounds the answers of Member that are kept.
const mostMembers = 1 << 16

// Member implements Program.
func (i *Image) Member(at *ScopePoint, object *flow.Object, offset int64) *Declared {
	key := memberAt{at.PC, object.Addr, offset}
	m, known := i.members[key]
	if !known {
		m = i.findMember(at, object, offset)
		if len(i.members) < mostMembers {
			i.members[key] = m
		}
	}
	return m
}

func (i *Image) findMember(at *ScopePoint, object *flow.Object, offset int64) (found *Declared) {
	module := i.process.ModuleAt(at.PC)
	if module == nil {
		return nil
	}
	info, err := module.Debug()
	if err != nil || info == nil {
		return nil
	}
	calls, err := info.CallsAt(module.LinkAddr(at.PC))
	if err != nil {
		return nil
	}
	frame := i.frame(at.PC, at.Register, module)
	if frame == nil {
		return nil
	}
	for _, call := range calls {
		vars, err := info.VariablesAt(call, module.LinkAddr(at.PC))
		if err != nil {
			return nil
		}
		for _, v := range vars {
			if v.Type == nil || v.Type.Kind() != debuginfo.KindPointer {
				continue
			}
			target := v.Type.Elem()
			if target != nil && offset == 0 && target.Kind() != debuginfo.KindStruct && at.mayLead(frame, v, object) {
				return nil // the code may mean the object, and not its first member
			}
			if target == nil || !at.leads(frame, v, object) || target.Kind() != debuginfo.KindStruct || target.Size() <= offset || uint64(target.Size()) > object.Size {
				continue // it says nothing of this memory
			}
			name, size, begins := arrayAt(target, offset, 0)
			if !begins || offset+size == target.Size() && object.Size > uint64(target.Size()) {
				return nil // it may be meant to have more elements than declared
			}
			if found == nil || found.Size < uint64(size) {
				found = &Declared{Name: v.Name + "->" + name, Addr: object.Addr + evidence.Addr(offset), Size: uint64(size), Member: true}
			}
		}
	}
	return found
}

// leads reports whether a pointer variable leads to an object. Optimised code may keep the pointer where the debug information
// does not say; then the size of what it points to has to be the object's.
func (at *ScopePoint) leads(frame *value.Frame, v debuginfo.Variable, object *flow.Object) bool {
	l, err := value.Lives(frame, v)
	switch {
	case err != nil:
		return uint64(v.Type.Elem().Size()) == object.Size
	case l.InRegister:
		got, known := frame.Registers.Get(l.Register)
		return known && got == uint64(object.Addr)
	case l.InMemory:
		got, known := at.Word(l.Addr)
		return known && got == uint64(object.Addr)
	}
	return false
}

// mayLead reports whether a pointer variable leads to an object, as far as it is known where the variable is.
func (at *ScopePoint) mayLead(frame *value.Frame, v debuginfo.Variable, object *flow.Object) bool {
	_, err := value.Lives(frame, v)
	return err != nil || at.leads(frame, v, object)
}

// mostNested bounds how deep structs are looked into.
const mostNested = 8

// arrayAt is the outermost array of a struct that an offset is in. begins: the offset is its start, no union has it, and it has a fixed number
// of elements.
func arrayAt(t debuginfo.Type, offset int64, depth int) (name string, size int64, begins bool) {
	for _, m := range t.Members() {
		if m.Type == nil || m.BitSize > 0 || offset < m.Offset || offset >= m.Offset+m.Type.Size() {
			continue
		}
		switch m.Type.Kind() {
		case debuginfo.KindArray:
			return m.Name, m.Type.Size(), offset == m.Offset && m.Type.Count() > 1
		case debuginfo.KindStruct:
			if depth == mostNested {
				return "", 0, false
			}
			name, size, begins = arrayAt(m.Type, offset-m.Offset, depth+1)
			if m.Name != "" && !m.Base {
				name = m.Name + "." + name
			}
			return name, size, begins
		}
		return "", 0, false
	}
	return "", 0, false
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
