package staticscan

import (
	"diagnose/evidence"
	"diagnose/image/x86"
)

// Returned is a call whose result a value is.
type Returned struct {
	// Function is its name; empty: it is called through a pointer, or has none. Entry is its address; 0: not known.
	Function string
	Entry    evidence.Addr
	Site     evidence.Site
	// Arguments are the first integer arguments, Names the program's expressions for them. Nil: not known any more.
	Arguments [calledArguments]*uint64
	Names     [calledArguments]string
}

// calledArguments is how many arguments of a call that returned are computed.
const calledArguments = 3

// Load is a read of memory on the way of the bad value.
type Load struct {
	// Site is the instruction.
	Site evidence.Site
	// Cell is the address; nil: it is not known any more. It is Offset from Base, which Call returned, where they are
	// known.
	Cell, Base *evidence.Addr
	Offset     int64
	Call       *Returned
}

// loadOf describes a read of memory.
func (t *originSearch) loadOf(s *backwardSlice, n *node) Load {
	l := Load{}
	if n.def >= 0 && n.def < len(s.a.flow.insts) {
		l.Site = t.site(evidence.Addr(s.a.flow.insts[n.def].PC))
	}
	if addr, ok := s.location(n); ok {
		l.Cell = &addr
	}
	base, offset := addressBase(n.a)
	l.Offset = offset
	if v, ok := base.best(); ok {
		l.Base = addrOf(v)
	}
	if base.op == opResult {
		l.Call = t.returned(s, base)
	}
	return l
}

// addressBase takes constant summands off an address, and follows it through words of the frame.
func addressBase(n *node) (base *node, offset int64) {
	for range maxDepth {
		switch {
		case n.op == opCopy && n.size == 8 && !n.advanced:
			n = n.a
		case n.op == opSum && n.b.op == opConst:
			n, offset = n.a, offset+n.b.n
		case n.op == opSum && n.a.op == opConst:
			n, offset = n.b, offset+n.a.n
		case n.op == opLoad && n.stored != nil && n.size == 8:
			n = n.stored
		default:
			return n, offset
		}
	}
	return n, offset
}

// returned describes the call that a result is of.
func (t *originSearch) returned(s *backwardSlice, n *node) *Returned {
	d := n.def
	if d < 0 || d >= len(s.a.flow.insts) {
		return nil
	}
	in := &s.a.flow.insts[d]
	r := &Returned{Function: s.calledName(d), Site: t.site(evidence.Addr(in.PC))}
	if in.HasTarget {
		r.Entry = s.callee(evidence.Addr(in.Target))
	}
	for i, reg := range x86.ArgumentRegisters[:calledArguments] {
		argument := s.register(d, reg, 0)
		if v, ok := argument.best(); ok {
			r.Arguments[i] = &v
		}
		if e, ok := s.describe(argument, 0); ok && !e.result {
			r.Names[i] = e.text
		}
	}
	return r
}
