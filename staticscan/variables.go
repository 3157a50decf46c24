package staticscan

import (
	"sort"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	typed "diagnose/image/value"
	"diagnose/image/x86"
)

// variable is a DWARF variable and where it is.
type variable struct {
	debuginfo.Variable
	inMemory, inRegister bool
	addr                 evidence.Addr
	register             x86.Reg
}

// visible returns the variables in scope at an instruction, inlined and
// inner scopes first.
func (s *backwardSlice) visible(pos int) []variable {
	pc := evidence.Addr(s.a.flow.insts[pos].PC)
	if list, ok := s.variables[pc]; ok {
		return list
	}
	list := s.readVariables(pc)
	s.variables[pc] = list
	return list
}

func (s *backwardSlice) readVariables(pc evidence.Addr) []variable {
	m := s.a.function.module
	info := debugOf(m)
	if info == nil {
		return nil
	}
	calls, err := info.CallsAt(m.LinkAddr(pc))
	if err != nil {
		return nil
	}
	frame := s.typedFrame()
	var list []variable
	for _, call := range calls {
		vars, err := info.VariablesAt(call, m.LinkAddr(pc))
		if err != nil {
			continue
		}
		sort.SliceStable(vars, func(i, j int) bool { return vars[i].Depth > vars[j].Depth })
		for _, v := range vars {
			if loc, err := typed.Lives(frame, v); err == nil && v.Type != nil {
				list = append(list, variable{Variable: v, inMemory: loc.InMemory, addr: loc.Addr,
					inRegister: loc.InRegister, register: x86.Reg(loc.Register)})
			}
		}
	}
	return list
}

// registerVariable is the variable that a register holds before an
// instruction. Of several, one that says what it points to is taken: a
// callback's context comes in as void * and is copied to a typed pointer.
func (s *backwardSlice) registerVariable(r x86.Reg, pos int) (variable, bool) {
	var first variable
	found := false
	for _, v := range s.visible(pos) {
		if !v.inRegister || v.register != r || v.Name == "" {
			continue
		}
		if v.Type == nil || v.Type.Kind() != debuginfo.KindPointer || v.Type.Elem() != nil {
			return v, true
		}
		if !found {
			first, found = v, true
		}
	}
	return first, found
}

// memoryVariable is the variable whose bytes cover an address.
func (s *backwardSlice) memoryVariable(addr evidence.Addr, pos int) (variable, bool) {
	for _, v := range s.visible(pos) {
		if v.inMemory && v.Name != "" && addr >= v.addr && addr-v.addr < evidence.Addr(max(v.Type.Size(), 0)) {
			return v, true
		}
	}
	return variable{}, false
}

// debugOf is the debug information of a module; nil: there is none.
func debugOf(m *image.Module) *debuginfo.Info {
	if m == nil {
		return nil
	}
	info, err := m.Debug()
	if err != nil {
		return nil
	}
	return info
}

// typedFrame is the context in which the function's variables are read.
func (s *backwardSlice) typedFrame() *typed.Frame {
	return &typed.Frame{Process: s.process, Thread: s.thread, Module: s.a.function.module, Registers: s.registers, CFA: s.frame.CFA}
}

// atEntry is the function as the debug information has it, and its variables in scope at its entry; nil: it has none.
func (s *backwardSlice) atEntry() (*debuginfo.Function, []debuginfo.Variable) {
	m := s.a.function.module
	info := debugOf(m)
	if info == nil {
		return nil, nil
	}
	entry := m.LinkAddr(s.a.function.entry)
	calls, err := info.CallsAt(entry)
	if err != nil || len(calls) == 0 {
		return nil, nil
	}
	outermost := calls[len(calls)-1]
	vars, err := info.VariablesAt(outermost, entry)
	if err != nil {
		return nil, nil
	}
	return outermost.Function, vars
}

// parameter is the parameter that came in by a register: the one DWARF puts
// there at the function's entry.
func (s *backwardSlice) parameter(r x86.Reg) (debuginfo.Variable, bool) {
	_, vars := s.atEntry()
	frame := s.typedFrame()
	for _, v := range vars {
		if !v.Parameter {
			continue
		}
		if loc, err := typed.Lives(frame, v); err == nil && loc.InRegister && loc.Register == image.Register(r) {
			return v, true
		}
	}
	return debuginfo.Variable{}, false
}
