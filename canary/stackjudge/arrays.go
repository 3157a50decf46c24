package stackjudge

import (
	"cmp"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/value"
	"diagnose/image/x86"
	"diagnose/image/x86/heights"
)

// Bounds of the arrays that are looked at.
const (
	mostArrays = 128
	mostSize   = 1 << 20 // bytes of an array, and from an array to the word
	mostPlaces = 4096    // instructions at which variables are looked up
	deepest    = 6       // members within members
	mostParts  = 64      // members of one structure
)

// array is an array in the memory of a frame.
type array struct {
	name, typ, function, file string
	line                      int
	addr                      evidence.Addr
	size                      uint64
	// element is the size of an element, if it is an integer or a character; 0 for others.
	element int
}

// end is the first address past the array.
func (x *array) end() evidence.Addr { return x.addr + evidence.Addr(x.size) }

// arraysOf are the arrays that the function, and those inlined there, declare, and that are below the word in the
// frame, the lowest first. They are looked up at every instruction, as each is known in its block only.
func (j *judge) arraysOf(a *activation) []array {
	info, err := a.module.Debug()
	if err != nil || info == nil {
		return nil
	}
	frame := &value.Frame{Process: j.Process, Thread: j.Thread, Module: a.module, CFA: a.cfa, Lookup: image.AtInstruction}
	found := &variables{frame: frame}
	step := max(1, len(a.Insts)/mostPlaces)
	for i := 0; i < len(a.Insts); i += step {
		if a.at[i] == nil {
			continue
		}
		pc := a.Insts[i].PC
		frame.Registers = registersAt(a.at[i], a.cfa, pc)
		calls, err := info.CallsAt(a.module.LinkAddr(evidence.Addr(pc)))
		if err != nil {
			continue
		}
		for _, call := range calls {
			variables, err := info.VariablesAt(call, a.module.LinkAddr(evidence.Addr(pc)))
			if err != nil {
				continue
			}
			for k := range variables {
				found.addVariable(&variables[k], call.Function)
			}
		}
	}
	a.variables = found.plain
	list := slices.DeleteFunc(found.arrays, func(x array) bool {
		return x.end() > a.word.addr || x.end() < x.addr || a.word.addr-x.addr > mostSize
	})
	slices.SortStableFunc(list, func(x, y array) int { return cmp.Or(cmp.Compare(x.addr, y.addr), cmp.Compare(x.size, y.size)) })
	return list
}

// registersAt are the registers at an instruction that the code alone determines.
func registersAt(at *heights.Positions, cfa evidence.Addr, pc uint64) (regs image.Registers) {
	for r := range at {
		if at[r].Origin == heights.FromCFA {
			regs.Set(x86.Reg(r), uint64(cfa)+uint64(at[r].Offset))
		}
	}
	regs.Set(image.RIP, pc)
	return regs
}

// variables are those of a frame that are in memory.
type variables struct {
	frame  *value.Frame
	arrays []array
	plain  []extent // those without an array
}

// addVariable adds a variable, if it is not there already.
func (l *variables) addVariable(v *debuginfo.Variable, f *debuginfo.Function) {
	if v.Type == nil || v.Type.Size() <= 0 || v.Type.Size() > mostSize {
		return
	}
	where, err := value.Lives(l.frame, *v)
	if err != nil || !where.InMemory {
		return
	}
	x := array{name: v.Name, file: v.File, line: v.Line, addr: where.Addr}
	if f != nil {
		x.function = f.Name
	}
	parts := addParts(nil, x, v.Type, 0)
	for _, part := range parts {
		same := func(y array) bool { return y.addr == part.addr && y.size == part.size && y.name == part.name }
		if len(l.arrays) < mostArrays && !slices.ContainsFunc(l.arrays, same) {
			l.arrays = append(l.arrays, part)
		}
	}
	own := extent{where.Addr, where.Addr + evidence.Addr(v.Type.Size())}
	if len(parts) == 0 && len(l.plain) < mostArrays && !slices.Contains(l.plain, own) {
		l.plain = append(l.plain, own)
	}
}

// addParts adds an array, or the arrays that a structure has.
func addParts(list []array, x array, t debuginfo.Type, depth int) []array {
	if t == nil || t.Size() <= 0 || t.Size() > mostSize || depth > deepest || len(list) >= mostArrays {
		return list
	}
	switch t.Kind() {
	case debuginfo.KindArray:
		x.typ, x.size, x.element = t.Name(), uint64(t.Size()), elementSize(t)
		list = append(list, x)
	case debuginfo.KindStruct, debuginfo.KindUnion:
		members := t.Members()
		for i := range members[:min(len(members), mostParts)] {
			m := &members[i]
			if m.BitSize != 0 || m.Offset < 0 {
				continue
			}
			part := x
			part.addr += evidence.Addr(m.Offset)
			if !m.Base && m.Name != "" {
				part.name += "." + m.Name
			}
			list = addParts(list, part, m.Type, depth+1)
		}
	}
	return list
}

// elementSize is the size of an array's elements, if they are integers or characters; 0 for others.
func elementSize(t debuginfo.Type) int {
	e := t.Elem()
	for range deepest {
		if e == nil || e.Kind() != debuginfo.KindArray {
			break
		}
		e = e.Elem()
	}
	if e == nil {
		return 0
	}
	switch e.Kind() {
	case debuginfo.KindInt, debuginfo.KindUint, debuginfo.KindChar, debuginfo.KindEnum:
		switch n := e.Size(); n {
		case 1, 2, 4, 8:
			return int(n)
		}
	}
	return 0
}
