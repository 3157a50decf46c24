package staticscan

import (
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/image/x86"
)

// computedBy reads an instruction as a formula for register r.
func (s *backwardSlice) computedBy(d int, in *x86.Inst, r x86.Reg, depth int) *node {
	if in.Op == "cdqe" {
		return s.evaluated(&node{op: opCopy, a: s.register(d, x86.RAX, depth), size: 4, signed: true})
	}
	dst, ok := explicit(in, 0)
	if n := s.wide(d, in, r, depth); n != nil {
		return n
	}
	if ok && !dst.IsMemory && dst.Reg == r && dst.Size < 4 {
		if n := s.part(d, in, depth); n != nil {
			return n
		}
	}
	if !ok || dst.IsMemory || dst.Reg != r || dst.Size < 4 {
		return lostNode(fmt.Sprintf("it was computed by %q", in.Text()))
	}
	if in.Op == "pop" {
		return s.load(d, x86.Memory{Base: x86.RSP, Index: x86.RegNone}, 8, false, depth)
	}
	src, two := explicit(in, 1)
	if n := s.formula(d, in, dst, src, two, depth); n != nil {
		return s.inRegister(s.evaluated(n), dst.Size, d)
	}
	if n := s.made(d, in, dst, src, two, depth); n != nil {
		return n
	}
	return lostNode(fmt.Sprintf("it was computed by %q", in.Text()))
}

// part is a load of one or two bytes into a part of a register, or a copy there;
// nil for others.
func (s *backwardSlice) part(d int, in *x86.Inst, depth int) *node {
	src, two := explicit(in, 1)
	if !two {
		return nil
	}
	switch in.Op {
	case "mov", "movzx", "movsx":
		return s.copyOf(d, src, src.Size, in.Op == "movsx", depth)
	}
	return nil
}

// wide is for products, quotients and signs that lie in rdx and rax; nil for others.
func (s *backwardSlice) wide(d int, in *x86.Inst, r x86.Reg, depth int) *node {
	factor, one := explicit(in, 0)
	_, two := explicit(in, 1)
	switch {
	case r != x86.RAX && r != x86.RDX:
		return nil
	case (in.Op == "cdq" || in.Op == "cqo") && r == x86.RDX:
		return &node{op: opMade, a: s.register(d, x86.RAX, depth), reg: x86.RegNone, def: d}
	case one && !two && (in.Op == "div" || in.Op == "idiv" || in.Op == "mul" || in.Op == "imul"):
		return &node{op: opMade, a: s.register(d, x86.RAX, depth), b: s.operand(d, factor, depth), reg: x86.RegNone, def: d}
	}
	return nil
}

// chosen is what a conditional move gives: its source, or what was there before. b is
// one or the other, by the value that the register has, if that tells.
func (s *backwardSlice) chosen(d int, dst, src *x86.Operand, depth int) *node {
	return &node{op: opMade, choice: true, a: s.register(d, dst.Reg, depth), b: s.operand(d, src, depth), reg: x86.RegNone, def: d}
}

// choose is the side of a choice that the value came by; nil if that is not known.
func (n *node) choose() *node {
	v, known := n.best()
	if !known {
		return nil
	}
	same := func(x *node) (equal, known bool) {
		w, known := x.best()
		return known && uint32(w) == uint32(v), known
	}
	a, aKnown := same(n.a)
	b, bKnown := same(n.b)
	switch {
	case a && bKnown && !b:
		return n.a
	case b && aKnown && !a:
		return n.b
	}
	return nil
}

// source is the only thing that is no constant of those that a value was made of; nil
// if they are several, or none.
func (s *backwardSlice) source(n *node) *node {
	var found *node
	one := true
	visits := 0
	var visit func(n *node)
	visit = func(n *node) {
		if visits++; n == nil || visits > maxVisited {
			one = one && n == nil
			return
		}
		switch n.op {
		case opConst:
		case opCopy, opProduct:
			visit(n.a)
		case opSum, opMade:
			visit(n.a)
			visit(n.b)
		default:
			one = one && (found == nil || s.sameSource(found, n))
			found = n
		}
	}
	visit(n)
	if !one || found == nil || found.op == opLost {
		return nil
	}
	return found
}

func (s *backwardSlice) sameSource(x, y *node) bool {
	switch {
	case x == y:
		return true
	case x.op != y.op:
		return false
	case x.op == opLoad:
		if x.def == y.def {
			return true
		}
		a, known := s.location(x)
		b, also := s.location(y)
		return known && also && a == b && x.size == y.size
	case x.op == opEntry:
		return x.reg == y.reg
	}
	return x.op == opResult && x.def == y.def
}

// made is for the instructions that compute no address but give a value that
// depends on what was there; nil for others.
func (s *backwardSlice) made(d int, in *x86.Inst, dst, src *x86.Operand, two bool, depth int) *node {
	if strings.HasPrefix(in.Op, "cmov") && two {
		return s.chosen(d, dst, src, depth)
	}
	switch in.Op {
	case "and", "or", "xor", "sub", "imul", "shl", "shr", "sar", "rol", "ror", "neg", "not", "bswap":
	default:
		return nil
	}
	n := &node{op: opMade, a: s.register(d, dst.Reg, depth), reg: x86.RegNone, def: d}
	if two && !src.IsImm {
		n.b = s.operand(d, src, depth)
	}
	if n.b != nil && (n.a.op == opConst || n.a.op == opLost) {
		n.a, n.b = n.b, n.a
	}
	return n
}

// inRegister is a value written to the low size bytes of a register: 32-bit
// results are cut and extended with zeros (Intel SDM volume 1, 3.4.1.1).
func (s *backwardSlice) inRegister(n *node, size, d int) *node {
	if !n.isComputable || extend(n.computed, size, false) == n.computed {
		return n
	}
	n.def = d
	return s.evaluated(&node{op: opCopy, a: n, size: size, reg: x86.RegNone, def: d})
}

func sumOf(a, b *node) *node { return &node{op: opSum, a: a, b: b, reg: x86.RegNone, def: -1} }

func productOf(a *node, n int64) *node {
	return &node{op: opProduct, a: a, n: n, reg: x86.RegNone, def: -1}
}

// formula covers the instructions that compute addresses; nil for others.
func (s *backwardSlice) formula(d int, in *x86.Inst, dst, src *x86.Operand, two bool, depth int) *node {
	old := func() *node { return s.register(d, dst.Reg, depth) }
	if !two {
		switch in.Op {
		case "inc":
			return sumOf(old(), constNode(1, d))
		case "dec":
			return sumOf(old(), constNode(^uint64(0), d))
		}
		return nil
	}
	third, three := explicit(in, 2)
	switch in.Op {
	case "mov", "movabs", "movzx":
		return s.copyOf(d, src, dst.Size, false, depth)
	case "movsx", "movsxd":
		return s.copyOf(d, src, dst.Size, true, depth)
	case "lea":
		return s.addressOf(d, &src.Memory, depth)
	case "add":
		return sumOf(old(), s.operand(d, src, depth))
	case "sub":
		if sameRegister(dst, src) {
			return constNode(0, d)
		}
		if src.IsImm {
			return sumOf(old(), constNode(uint64(-src.Imm), d))
		}
	case "xor":
		if sameRegister(dst, src) {
			return constNode(0, d)
		}
	case "and":
		if src.IsImm && src.Imm == 0 {
			return constNode(0, d)
		}
	case "shl":
		if src.IsImm && src.Imm >= 0 && src.Imm < 32 {
			return productOf(old(), 1<<src.Imm)
		}
	case "imul":
		if three && third.IsImm {
			return productOf(s.operand(d, src, depth), third.Imm)
		}
	}
	return nil
}

// copyOf is an operand moved into a register of size bytes.
func (s *backwardSlice) copyOf(d int, src *x86.Operand, size int, signed bool, depth int) *node {
	switch {
	case src.IsImm:
		n := uint64(src.Imm)
		if size == 4 {
			n = uint64(uint32(n))
		}
		return constNode(n, d)
	case src.IsMemory:
		return s.load(d, src.Memory, src.Size, signed, depth)
	case src.Reg.General():
		return &node{op: opCopy, a: s.register(d, src.Reg, depth), size: src.Size, signed: signed, reg: x86.RegNone, def: -1}
	}
	return nil
}

func (s *backwardSlice) operand(d int, op *x86.Operand, depth int) *node {
	if !op.IsImm && !op.IsMemory && op.Reg.General() && op.Size == 8 {
		return s.register(d, op.Reg, depth)
	}
	if n := s.copyOf(d, op, 8, false, depth); n != nil {
		return s.evaluated(n)
	}
	return lostNode("it was in a vector register")
}

// addressOf is the effective address of a memory operand.
func (s *backwardSlice) addressOf(d int, m *x86.Memory, depth int) *node {
	if m.Base == x86.RIP || m.Absolute && m.Segment == x86.SegNone {
		return constNode(m.Target, d)
	}
	if m.Segment != x86.SegNone || m.Index == x86.RegVector {
		if at := s.a.addrs[d]; at.kind == absolute && !at.varies {
			return constNode(uint64(at.off), d)
		}
		return lostNode("the address is relative to a segment or a vector")
	}
	var sum *node
	if m.Base.General() {
		sum = s.register(d, m.Base, depth)
	}
	if m.Index.General() {
		index := s.register(d, m.Index, depth)
		if m.Scale != 1 {
			index = s.evaluated(productOf(index, int64(m.Scale)))
		}
		sum = s.plus(sum, index)
	}
	if m.Disp != 0 || sum == nil {
		sum = s.plus(sum, constNode(uint64(m.Disp), d))
	}
	return sum
}

func (s *backwardSlice) plus(a, b *node) *node {
	if a == nil {
		return b
	}
	return s.evaluated(sumOf(a, b))
}

// load is the content of a memory operand, and, for a word of the function's
// own stack frame, what the function put there.
func (s *backwardSlice) load(d int, m x86.Memory, size int, signed bool, depth int) *node {
	if size != 1 && size != 2 && size != 4 && size != 8 {
		return nil
	}
	n := &node{op: opLoad, a: s.addressOf(d, &m, depth), size: size, signed: signed, at: s.a.addrs[d], reg: x86.RegNone, def: d, pos: d}
	s.evaluated(n)
	if n.at.kind == stack && !n.at.varies {
		n.stored = s.storedIn(d, n, depth)
	}
	return n
}

// location is the address that a load read, as far as it is known.
func (s *backwardSlice) location(n *node) (evidence.Addr, bool) {
	if v, ok := n.a.best(); ok {
		return evidence.Addr(v), true
	}
	if n.at.kind == stack && n.at.base == 0 && !n.at.varies && s.entrySP != 0 {
		return s.entrySP + evidence.Addr(n.at.off), true
	}
	if addr, ok := n.at.address(); ok && n.at.kind == absolute && !n.at.varies {
		return addr, true
	}
	return 0, false
}

// evaluated computes what the node yields in the stopped process.
func (s *backwardSlice) evaluated(n *node) *node {
	switch n.op {
	case opCopy:
		if v, ok := n.a.best(); ok {
			n.computed, n.isComputable = extend(v, n.size, n.signed), true
		}
	case opSum:
		x, ok := n.a.best()
		y, both := n.b.best()
		n.computed, n.isComputable = x+y, ok && both
	case opProduct:
		v, ok := n.a.best()
		n.computed, n.isComputable = v*uint64(n.n), ok
	case opLoad:
		if addr, ok := s.location(n); ok {
			if v, err := readWord(s.memory, addr, n.size); err == nil {
				n.computed, n.isComputable = extend(v, n.size, n.signed), true
			}
		}
	}
	return n
}

func extend(v uint64, size int, signed bool) uint64 {
	shift := uint(64 - 8*size)
	if size <= 0 || size >= 8 {
		return v
	}
	if signed {
		return uint64(int64(v<<shift) >> shift)
	}
	return v << shift >> shift
}

// storedIn finds what the function last stored into a word of its frame
// before pos. Nil when that cannot be told: several stores, an argument
// passed on the stack, or a callee that was given the word's address.
func (s *backwardSlice) storedIn(pos int, n *node, depth int) *node {
	escaped := s.escapes(n, pos)
	hits := s.a.flow.reaching(pos, func(i int) bool {
		if escaped && s.a.flow.insts[i].Flow == x86.FlowCall {
			return true
		}
		return s.storesInto(i, n.at, n.size)
	})
	var match *node
	for _, i := range hits {
		if i < 0 {
			return nil
		}
		v := s.storeOf(i, n, depth)
		if v == nil {
			return nil
		}
		if len(hits) == 1 {
			return v
		}
		// Of several stores, only the one that left what is there now.
		now, ok := v.best()
		if !ok || !n.isComputable || len(hits) > maxCandidates {
			return nil
		}
		if now == n.computed {
			if match != nil {
				return nil
			}
			match = v
		}
	}
	return match
}

func (s *backwardSlice) storesInto(i int, at value, size int) bool {
	in := &s.a.flow.insts[i]
	for k := range in.Operands {
		op := &in.Operands[k]
		if !op.IsMemory || !op.Access.Writes() {
			continue
		}
		to := s.a.addrs[i]
		return to.kind == stack && to.base == at.base && !to.varies &&
			to.off < at.off+int64(size) && at.off < to.off+int64(max(op.Size, 1))
	}
	return false
}

// storeOf is the value that a plain store wrote to a word, or to the wider one that begins with it.
func (s *backwardSlice) storeOf(i int, n *node, depth int) *node {
	in := &s.a.flow.insts[i]
	dst, ok := explicit(in, 0)
	src, two := explicit(in, 1)
	if !ok || !two || in.Op != "mov" || !dst.IsMemory || s.a.addrs[i].off != n.at.off || dst.Size < n.size || dst.Size > 8 {
		return nil
	}
	v := s.copyOf(i, src, dst.Size, false, depth+1)
	switch {
	case v == nil:
		return nil
	case dst.Size > n.size:
		return s.evaluated(&node{op: opCopy, a: s.evaluated(v), size: n.size, reg: x86.RegNone, def: i})
	}
	if v.op == opCopy && v.size == 8 {
		v = v.a
	}
	return s.evaluated(v)
}

// escapes reports whether the address of the word, or of the variable that
// holds it, is taken in the function.
func (s *backwardSlice) escapes(n *node, pos int) bool {
	at := value{kind: stack, base: n.at.base, off: n.at.off}
	if s.a.stackAddresses[at] {
		return true
	}
	addr, ok := s.location(n)
	if !ok {
		return false
	}
	v, ok := s.memoryVariable(addr, pos)
	if !ok {
		return false
	}
	for taken := range s.a.stackAddresses {
		if d := taken.off - n.at.off; taken.base == n.at.base {
			start := addr + evidence.Addr(d)
			if start >= v.addr && start < v.addr+evidence.Addr(v.Type.Size()) {
				return true
			}
		}
	}
	return false
}
