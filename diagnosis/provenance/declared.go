package provenance

import (
	"iter"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/value"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// Declared is a variable with its place.
type Declared struct {
	Name string
	Addr evidence.Addr
	Size uint64 // in bytes
	// Room is how many bytes the memory of a std::vector has, of which the elements have Size; 0: it is another variable.
	Room uint64
	// Single: it has no parts, so it may be one of several that the linker put next to each other for the program to go through.
	Single bool
	// Static: it has static storage. The linker chooses its neighbours, and compilers do not access them together with it.
	Static bool
	// Member: it is an array of a struct. The code might mean another one there, or the struct.
	Member bool
	typ    debuginfo.Type
}

// end is the address after it.
func (d *Declared) end() evidence.Addr { return d.Addr + evidence.Addr(d.Size) }

// declared is the variable whose address a function was handed over by its caller, and from which the pointer in memory operand k of
// step n was derived; nil: it is not known. Inside of one function compilers reach a variable from the address of another; there only one
// without parts and with static storage is known.
func (f *follower) declared(n, k int) *Declared {
	s := f.trace.Step(n)
	user := f.program.Function(s.PC)
	if user == "" {
		return nil
	}
	if m := &s.Inst.Operands[k].Memory; m.Base == x86.RIP && f.program.Own(s.PC) {
		addr, _ := f.trace.Address(n, k)
		if v := f.program.Static(addr); v != nil && v.Single {
			return v
		}
		return nil
	}
	for _, l := range f.pointers(n, k) {
		if v := f.handedOver(l, n, user); v != nil {
			if m := f.program.Elements(f.scopePoint(n), v); m != nil {
				return m
			}
			return v
		}
	}
	return nil
}

func (f *follower) handedOver(l flow.Location, n int, user string) *Declared {
	key := func(d flow.Definition) handedStep { return handedStep{stepOf(d), user} }
	return recall(&f.memo.handed, f.pointerWay(l, n), key, func(d flow.Definition) (*Declared, bool) {
		if d.Kind == flow.Copied && !ofStackPointer(d) {
			return nil, false
		}
		v := f.addressed(d, user)
		return v, v != nil
	})
}

// pointerWay are the definitions that a pointer came through, by copies and by additions of numbers, the latest first. The last may be the
// one that made it of a constant, or of the stack pointer.
func (f *addresses) pointerWay(l flow.Location, n int) iter.Seq[flow.Definition] {
	return func(yield func(flow.Definition) bool) {
		for range mostSteps {
			d := f.define(l, n)
			switch d.Kind {
			case flow.Copied:
				if d.From[0].Size < 8 {
					return
				}
			case flow.Constant, flow.Computed:
			default:
				return
			}
			if !yield(d) || ofStackPointer(d) {
				return
			}
			if d.Kind == flow.Copied {
				l, n = d.From[0], d.At
				continue
			}
			next, ok := f.pointerOf(d)
			if !ok {
				return
			}
			l, n = next, d.At
		}
	}
}

// ofStackPointer reports whether a definition is a copy of the stack pointer.
func ofStackPointer(d flow.Definition) bool {
	return d.Kind == flow.Copied && d.From[0].Space == transfer.General && x86.Reg(d.From[0].Num) == x86.RSP
}

// addressed is the variable whose address a step made, as a constant or from the frame's; nil: it made none, or made it in the function
// that uses it and may mean another variable there.
func (f *addresses) addressed(d flow.Definition, user string) *Declared {
	s := f.trace.Step(d.At)
	if s.Inst == nil || d.Part.Size < 8 || !f.program.Own(s.PC) || !makesAddress(s.Inst) {
		return nil
	}
	variable := f.pointed(d)
	if variable == nil || f.program.Function(s.PC) == user && !(variable.Single && variable.Static) {
		return nil
	}
	return variable
}

// pointed is the variable that begins at the address which a step made; nil: none is known.
func (f *addresses) pointed(d flow.Definition) *Declared {
	v, known := f.value(d.Part, d.At+1)
	if !known {
		return nil
	}
	return f.program.Declared(f.trace.Step(d.At).PC, func(r x86.Reg) uint64 { return f.trace.Register(d.At, r) }, evidence.Addr(v))
}

// makesAddress reports whether an instruction makes an address of a constant alone, or of one and the frame's.
func makesAddress(inst *x86.Inst) bool {
	switch inst.Op {
	case "lea":
		for i := range inst.Operands {
			if o := &inst.Operands[i]; o.IsMemory {
				b := o.Memory.Base
				return o.Memory.Index == x86.RegNone && (b == x86.RSP || b == x86.RBP || b == x86.RIP || b == x86.RegNone)
			}
		}
	case "mov":
		return len(inst.Operands) > 1 && (inst.Operands[1].IsImm || !inst.Operands[1].IsMemory && inst.Operands[1].Reg == x86.RSP)
	}
	return false
}

// Declared implements Program.
func (i *Image) Declared(pc evidence.Addr, register func(x86.Reg) uint64, addr evidence.Addr) *Declared {
	m := i.process.ModuleAt(pc)
	if m == nil {
		return nil
	}
	info, err := m.Debug()
	if err != nil || info == nil {
		return nil
	}
	if s, ok := i.process.SymbolAt(addr); ok && s.Addr == addr && s.Module != nil {
		return i.Static(addr)
	}
	var found *Declared
	for _, v := range i.variablesAt(&ScopePoint{PC: pc, Register: register}) {
		l, err := value.Lives(v.frame, v.Variable)
		if err != nil || !l.InMemory || l.Addr != addr || !bounded(v.Type) {
			continue
		}
		if d := newDeclared(v.Name, addr, v.Type); found == nil || d.Size > found.Size {
			found = d
		}
	}
	return found
}

// Part implements Program. A variable comes before what pointers lead to.
func (i *Image) Part(at *ScopePoint, base, addr evidence.Addr, size int) (found *Part) {
	for _, v := range i.variablesAt(at) {
		l, err := value.Lives(v.frame, v.Variable)
		if err != nil {
			continue
		}
		if l.InMemory && addr >= l.Addr {
			if p := partOf(v.Name, v.Type, int64(addr-l.Addr), size); p != nil {
				return p
			}
		}
		if found != nil || v.Type.Kind() != debuginfo.KindPointer {
			continue
		}
		start, known := v.word(l)
		if to := evidence.Addr(start); known && to <= addr && (base == 0 || to == base) {
			if found = partOf(v.Name, v.Type.Elem(), int64(addr-to), size); found != nil {
				found.led(v.Name)
			}
		}
	}
	return found
}

// StaticPart implements Program.
func (i *Image) StaticPart(addr evidence.Addr, size int) *Part {
	s, ok := i.process.SymbolAt(addr)
	if !ok || s.Module == nil || addr < s.Addr || uint64(addr-s.Addr) >= s.Size {
		return nil
	}
	if v := i.Static(s.Addr); v != nil {
		return partOf(v.Name, v.typ, int64(addr-s.Addr), size)
	}
	return nil
}

// Static implements Program.
func (i *Image) Static(addr evidence.Addr) *Declared {
	v, known := i.statics[addr]
	if !known {
		if s, ok := i.process.SymbolAt(addr); ok && s.Addr == addr && s.Module != nil {
			v = global(s, addr)
		}
		i.statics[addr] = v
	}
	return v
}

// global is a variable with static storage; nil: its type does not say its size, or its symbol says another.
func global(s image.Symbol, addr evidence.Addr) *Declared {
	info, err := s.Module.Debug()
	if err != nil || info == nil {
		return nil
	}
	v, ok, err := info.GlobalAt(s.Module.LinkAddr(addr), 0)
	if err != nil || !ok || !bounded(v.Type) || uint64(v.Type.Size()) != s.Size {
		return nil
	}
	d := newDeclared(v.Name, addr, v.Type)
	d.Static = true
	return d
}

func newDeclared(name string, addr evidence.Addr, t debuginfo.Type) *Declared {
	return &Declared{Name: name, Addr: addr, Size: uint64(t.Size()), Single: t.Kind() != debuginfo.KindArray && t.Kind() != debuginfo.KindStruct, typ: t}
}

// bounded reports whether a variable has a size that the program cannot exceed.
func bounded(t debuginfo.Type) bool {
	if t == nil || t.Size() <= 0 {
		return false
	}
	switch t.Kind() {
	case debuginfo.KindBool, debuginfo.KindChar, debuginfo.KindInt, debuginfo.KindUint, debuginfo.KindFloat, debuginfo.KindEnum, debuginfo.KindPointer:
		return true
	case debuginfo.KindArray:
		return t.Count() > 0
	case debuginfo.KindStruct:
		members := t.Members()
		if len(members) == 0 {
			return false
		}
		last := members[len(members)-1].Type
		return last == nil || last.Kind() != debuginfo.KindArray || last.Count() > 0
	}
	return false
}
