package staticscan

import (
	"diagnose/evidence"
	"diagnose/image/debuginfo"
	typed "diagnose/image/value"
	"diagnose/image/x86"
)

// Mistyped is an argument that a call handed over for a parameter of another type: a number for a pointer, or a pointer to what the
// function does not expect.
type Mistyped struct {
	// Register hands it over (System V ABI, AMD64 supplement, 3.2.3).
	Register x86.Reg
	// Parameter and Argument are what the function and its caller call it, ParameterType and ArgumentType their types.
	Parameter, ParameterType string
	Argument, ArgumentType   string
	// Number: a number is handed over for a pointer.
	Number bool
}

// MistypedArguments compares the call that a frame is in with the function of the frame inside of it: the arguments whose types have
// nothing to do with those of the parameters. An argument for which the code has no variable is not among them. The frame's index is
// that of in.Frames, and at least 1.
func MistypedArguments(in Input, frame int) []Mistyped {
	if in.Process == nil || frame < 1 || frame >= len(in.Frames) {
		return nil
	}
	w := newWorld(&in)
	s, err := w.newSlice(&in, frame, in.Frames[frame].Registers)
	if err != nil || s.now < 0 || s.a.flow.insts[s.now].Flow != x86.FlowCall {
		return nil
	}
	to, known := s.calledAddress()
	called, err := w.newSlice(&in, frame-1, in.Frames[frame-1].Registers)
	if err != nil || known && !called.a.function.contains(to) {
		return nil
	}
	var list []Mistyped
	var pointers []handedPointer
	for _, p := range called.parameters() {
		n := s.register(s.now, p.register, 0)
		e, ok := s.describe(n, 0)
		if !ok || e.choice {
			continue
		}
		if e.result {
			e.typ = s.resultType(n)
		}
		x := Mistyped{Register: p.register, Parameter: p.Name, ParameterType: p.Type.Name(), Argument: e.text}
		object, offset := s.addressed(n)
		if p.Type.Kind() == debuginfo.KindPointer {
			pointers = append(pointers, handedPointer{x, p.Type.Elem(), pointedTo(object, offset, e.typ)})
		}
		if object != nil {
			if p.Type.Kind() == debuginfo.KindPointer && !holds(object, offset, p.Type.Elem()) {
				x.ArgumentType = object.Name() + " *"
				list = append(list, x)
			}
			continue
		}
		if _, isAddress := s.addressTerms(n); !isAddress && e.typ != nil && !passes(p.Type, e.typ) && !s.otherPasses(n, p.Type) {
			x.ArgumentType, x.Number = e.typ.Name(), e.typ.Kind() != debuginfo.KindPointer
			list = append(list, x)
		}
	}
	return append(list, exchanged(pointers)...)
}

// handedPointer is an argument for a pointer, and the types that the parameter leads to and the argument does; nil: it is not known, or void.
type handedPointer struct {
	Mistyped
	parameter, argument debuginfo.Type
}

// pointedTo is the type that an argument leads to: the elements of an array, if it is the address of one, else what its own type says.
func pointedTo(object debuginfo.Type, offset int64, argument debuginfo.Type) debuginfo.Type {
	switch {
	case object != nil && (offset != 0 || object.Kind() != debuginfo.KindArray):
		return nil
	case object != nil:
		return object.Elem()
	case argument != nil && argument.Kind() == debuginfo.KindPointer:
		return argument.Elem()
	}
	return nil
}

// exchanged are the arguments of which two have each other's type and not their own, also where one is a pointer to bytes, which would fit
// everything.
func exchanged(list []handedPointer) (found []Mistyped) {
	for i := range list {
		for k := range list[:i] {
			a, b := &list[i], &list[k]
			if a.argument == nil || b.argument == nil || a.parameter == nil || b.parameter == nil || max(a.argument.Size(), b.argument.Size()) <= 1 {
				continue
			}
			if sameType(a.parameter, a.argument) || !sameType(a.parameter, b.argument) || !sameType(b.parameter, a.argument) {
				continue
			}
			for _, x := range []*handedPointer{b, a} {
				x.ArgumentType = x.argument.Name() + " *"
				found = append(found, x.Mistyped)
			}
		}
	}
	return found
}

// sameType reports whether two types are one, whatever their qualifiers are.
func sameType(a, b debuginfo.Type) bool {
	for range maxNesting {
		a, b = debuginfo.Complete(a), debuginfo.Complete(b)
		if a == nil || b == nil || a.Kind() != b.Kind() {
			return false
		}
		if a.Kind() != debuginfo.KindPointer {
			return a.Name() == b.Name() && a.Size() == b.Size()
		}
		a, b = a.Elem(), b.Elem()
	}
	return false
}

// otherPasses reports whether one of the variables that share a register with a value may have been meant for a parameter: of a pointer
// and its casts, which of them was passed cannot be told.
func (s *backwardSlice) otherPasses(n *node, parameter debuginfo.Type) bool {
	for range maxDepth {
		if n == nil {
			return false
		}
		if n.reg.General() {
			for _, v := range s.visible(n.pos) {
				if v.inRegister && v.register == n.reg && passes(parameter, v.Type) {
					return true
				}
			}
		}
		if n.op != opCopy {
			return false
		}
		n = n.a
	}
	return false
}

// resultType is the type of what a call returned, if the value is that; nil: it is not known.
func (s *backwardSlice) resultType(n *node) debuginfo.Type {
	from := n.origin()
	if from.op != opResult || from.def < 0 || !s.a.flow.insts[from.def].HasTarget {
		return nil
	}
	to := s.callee(evidence.Addr(s.a.flow.insts[from.def].Target))
	m := s.process.ModuleAt(to)
	info := debugOf(m)
	if info == nil {
		return nil
	}
	f, err := info.FunctionAt(m.LinkAddr(to))
	if err != nil || f == nil {
		return nil
	}
	result, _, err := f.Signature()
	if err != nil {
		return nil
	}
	return result
}

// addressTerms reports whether a value was computed as the address of something, and was not loaded as a whole.
func (s *backwardSlice) addressTerms(n *node) (at *node, ok bool) {
	for range maxDepth {
		if n == nil || n.op != opCopy {
			break
		}
		n = n.a
	}
	return n, n != nil && (n.op == opSum || n.op == opConst)
}

// addressed is the variable whose address a value was computed as, or an address inside of it; nil: it is not known to be one.
func (s *backwardSlice) addressed(n *node) (object debuginfo.Type, offset int64) {
	n, ok := s.addressTerms(n)
	if !ok {
		return nil, 0
	}
	v, known := n.best()
	if !known {
		return nil, 0
	}
	addr := evidence.Addr(v)
	if l, ok := s.memoryVariable(addr, s.now); ok {
		return l.Type, int64(addr - l.addr)
	}
	if g, ok := s.globalAt(addr, s.codeAt(s.now)); ok && g.typ != nil {
		return g.typ, int64(addr - g.addr)
	}
	return nil, 0
}

// passedParameter is a parameter and the register that it comes in by.
type passedParameter struct {
	debuginfo.Variable
	register x86.Reg
}

// parameters are those of the function that come in by general registers. The compiler says by which; where it has put them in memory at
// once, without optimisation, it is by their order.
func (s *backwardSlice) parameters() []passedParameter {
	function, vars := s.atEntry()
	if function == nil {
		return nil
	}
	result, _, err := function.Signature()
	if err != nil {
		return nil
	}
	ordered := result == nil || debuginfo.InGeneralRegister(result) || inVector(result) // else a register has the place for the result
	next := 0
	frame := s.typedFrame()
	var list []passedParameter
	for _, v := range vars {
		if !v.Parameter || inVector(v.Type) {
			continue
		}
		ordered = ordered && debuginfo.InGeneralRegister(v.Type)
		loc, err := typed.Lives(frame, v)
		switch {
		case err != nil || !debuginfo.InGeneralRegister(v.Type):
		case loc.InRegister:
			list = append(list, passedParameter{v, x86.Reg(loc.Register)})
		case loc.InMemory && ordered && next < len(x86.ArgumentRegisters):
			list = append(list, passedParameter{v, x86.ArgumentRegisters[next]})
		}
		next++
	}
	return list
}

// inVector reports whether a value of a type is passed in one vector register (System V ABI, AMD64 supplement, 3.2.3).
func inVector(t debuginfo.Type) bool {
	return t != nil && t.Kind() == debuginfo.KindFloat && t.Size() <= 8
}

// passes reports whether a value of one type may have been meant for a parameter of another: numbers of all kinds, and pointers of which
// one leads to what the other does.
func passes(parameter, argument debuginfo.Type) bool {
	p, a := parameter.Kind() == debuginfo.KindPointer, argument.Kind() == debuginfo.KindPointer
	switch {
	case p && a:
		return holds(argument.Elem(), 0, parameter.Elem()) || holds(parameter.Elem(), 0, argument.Elem())
	case p:
		return !debuginfo.InGeneralRegister(argument) || parameter.Elem() == nil
	case a:
		return !debuginfo.InGeneralRegister(parameter)
	}
	return true
}

// holds reports whether memory of one type has a value of another at an offset, or whether that cannot be told: bytes and void fit
// everything, and so do types of which the debug information has only the name.
func holds(object debuginfo.Type, offset int64, want debuginfo.Type) bool {
	if anything(object) || anything(want) {
		return true
	}
	for range maxNesting {
		if anything(object) || object.Kind() == debuginfo.KindUnion || offset == 0 && alike(object, want) {
			return true
		}
		switch object.Kind() {
		case debuginfo.KindArray:
			element := object.Elem()
			if element == nil || element.Size() <= 0 {
				return true
			}
			object, offset = element, offset%element.Size()
		case debuginfo.KindStruct:
			m, ok := memberAt(object, offset, 1)
			if !ok {
				return false
			}
			object, offset = m.Type, offset-m.Offset
		default:
			return false
		}
	}
	return true
}

// anything reports whether a type says nothing of what is there.
func anything(t debuginfo.Type) bool {
	if t == nil || t.Size() <= 1 {
		return true
	}
	switch t.Kind() {
	case debuginfo.KindUnknown, debuginfo.KindVoid, debuginfo.KindFunc:
		return true
	case debuginfo.KindArray:
		return t.Elem() == nil || t.Elem().Size() <= 1
	case debuginfo.KindStruct:
		return len(t.Members()) == 0
	}
	return false
}

// alike reports whether two types are one, or numbers of one size. Two structs that begin with the same type may be meant for one
// another, as those of socket addresses are.
func alike(a, b debuginfo.Type) bool {
	record := func(t debuginfo.Type) bool {
		return t.Kind() == debuginfo.KindStruct || t.Kind() == debuginfo.KindUnion
	}
	switch {
	case record(a) && record(b):
		x, y := a.Members(), b.Members()
		if len(x) == 0 || len(y) == 0 || x[0].Type == nil || y[0].Type == nil {
			return true
		}
		return x[0].Type.Name() == y[0].Type.Name()
	case record(a), record(b):
		return false
	case a.Kind() == debuginfo.KindArray || b.Kind() == debuginfo.KindArray:
		return a.Kind() == b.Kind() && a.Elem() != nil && b.Elem() != nil && alike(a.Elem(), b.Elem())
	}
	return a.Size() == b.Size()
}
