package staticscan

import (
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
	"diagnose/image/x86"
)

// expression is a value in the program's terms. Its typ is nil without
// debug information.
type expression struct {
	text string
	typ  debuginfo.Type
	// choice: it is one of several members of a union, and which one is meant is not known.
	choice bool
	// result: the text says which call returned the value; it is no expression of the program.
	result bool
}

// maxWords bounds the work of describing all values of a frame: formulas
// share their parts, and each may be described in several ways.
const maxWords = 20_000

// describe writes the value of a node as the program would: the variable
// that the register holds, a member reached through pointers, an element. ok
// is false when the program has no words for it.
func (s *backwardSlice) describe(n *node, depth int) (expression, bool) {
	if s.words++; n == nil || depth > maxDepth || s.words > maxWords {
		return expression{}, false
	}
	if n.reg.General() {
		if v, ok := s.registerVariable(n.reg, n.pos); ok {
			return expression{text: v.Name, typ: v.Type}, true
		}
	}
	switch n.op {
	case opCopy:
		return s.describe(n.a, depth+1)
	case opLoad:
		return s.describeLoad(n, depth)
	case opConst:
		return s.describeConst(uint64(n.n), n)
	case opSum:
		return s.describeSum(n, depth)
	case opEntry:
		if v, ok := s.parameter(n.reg); ok && n.reg.General() {
			return expression{text: v.Name, typ: v.Type}, true
		}
	case opResult:
		if name := s.calledName(n.def); name != "" {
			return expression{text: resultOf + lastName(name), result: true}, true
		}
	}
	return expression{}, false
}

// describeSum names pointer arithmetic by the element it leads to.
func (s *backwardSlice) describeSum(n *node, depth int) (expression, bool) {
	target, ok := s.describePlace(n, 0, n.pos, depth+1)
	if !ok || target.typ == nil {
		return expression{}, false
	}
	return expression{text: "&" + target.text, typ: target.typ}, true
}

func (s *backwardSlice) describeConst(v uint64, n *node) (expression, bool) {
	if !s.isStatic(v) {
		return expression{text: fmt.Sprintf("%#x", v)}, v == 0
	}
	g := s.nameData(evidence.Addr(v), 1, false, s.codeAt(n.def))
	return expression{text: "&" + g.name}, true
}

// isStatic also takes constants and code of objects for places with a name.
func (s *backwardSlice) isStatic(v uint64) bool {
	return s.isDataOrTLS(v) || s.process.ModuleAt(evidence.Addr(v)) != nil
}

func (s *backwardSlice) codeAt(i int) evidence.Addr {
	if i < 0 || i >= len(s.a.flow.insts) {
		return 0
	}
	return evidence.Addr(s.a.flow.insts[i].PC)
}

func (s *backwardSlice) describeLoad(n *node, depth int) (expression, bool) {
	if addr, ok := s.location(n); ok && n.at.kind == stack {
		if v, ok := s.memoryVariable(addr, n.pos); ok {
			p := walk(v.Type, int64(addr-v.addr), int64(n.size), n.at.varies)
			return expression{text: v.Name + p.path, typ: p.typ, choice: p.choice}, true
		}
		// A spilled register has no name, but what was spilled may have.
		return s.describe(n.stored, depth+1)
	}
	return s.describePlace(n.a, n.size, n.pos, depth+1)
}

// term is one summand of an address.
type term struct {
	node   *node
	factor int64
}

// sum is an address taken apart into terms and a constant.
type sum struct {
	terms  []term
	offset int64
	visits int
}

// maxVisited bounds a formula that uses its parts again and again.
const maxVisited = 256

func linear(n *node) ([]term, int64) {
	var s sum
	s.add(n, 1, 0)
	return s.terms, s.offset
}

func (s *sum) add(n *node, factor int64, depth int) {
	s.visits++
	if depth <= maxDepth && s.visits <= maxVisited && !n.advanced && !n.surer() {
		switch {
		case n.op == opConst:
			s.offset += factor * n.n
			return
		case n.op == opSum:
			s.add(n.a, factor, depth+1)
			s.add(n.b, factor, depth+1)
			return
		case n.op == opProduct:
			s.add(n.a, factor*n.n, depth+1)
			return
		case n.op == opCopy && n.size >= 4:
			s.add(n.a, factor, depth+1)
			return
		}
	}
	s.terms = append(s.terms, term{n, factor})
}

// surer reports that a register still holds a value one of whose parts is not known:
// the frame pointer, which the stack pointer was copied to.
func (n *node) surer() bool {
	gone := func(part *node) bool { return part != nil && part.op == opLost && !part.hasValue() }
	return n.isExact && n.reg.General() && (n.op == opCopy || n.op == opSum) && (gone(n.a) || gone(n.b))
}

// describePlace writes the size bytes at an address as the program would.
func (s *backwardSlice) describePlace(n *node, size int, pos, depth int) (expression, bool) {
	if depth > maxDepth {
		return expression{}, false
	}
	// A variable that holds the address itself is the better base.
	if base, offset := peel(n); base != nil && base.reg.General() {
		if v, ok := s.registerVariable(base.reg, base.pos); ok {
			if e, ok := s.deref(expression{text: v.Name, typ: v.Type}, offset, size, nil, depth); ok {
				return e, true
			}
		}
	}
	terms, offset := linear(n)
	if e, ok := s.placeInVariable(terms, offset, size, pos, depth); ok {
		return e, true
	}
	for i, t := range terms {
		if t.factor != 1 {
			continue
		}
		base, ok := s.describe(t.node, depth+1)
		if !ok || base.typ == nil || base.typ.Kind() != debuginfo.KindPointer {
			continue
		}
		rest := append(append([]term(nil), terms[:i]...), terms[i+1:]...)
		return s.deref(base, offset, size, rest, depth)
	}
	return expression{}, false
}

// peel takes constants off an address.
func peel(n *node) (*node, int64) {
	var offset int64
	for range maxDepth {
		if n.reg.General() && n.op == opSum && n.isExact {
			return n, offset
		}
		if n.op != opSum || n.b.op != opConst {
			return n, offset
		}
		offset += n.b.n
		n = n.a
	}
	return nil, 0
}

// deref names what a pointer expression leads to, with what indexes it.
func (s *backwardSlice) deref(base expression, offset int64, size int, index []term, depth int) (expression, bool) {
	width := int64(max(size, 1))
	if len(index) == 0 {
		text, p, ok := through(base.text, base.typ, offset, width, false)
		return expression{text: text, typ: p.typ, choice: p.choice}, ok
	}
	if _, _, ok := through(base.text, base.typ, offset, width, false); !ok {
		return expression{}, false
	}
	target := base.typ.Elem()
	if len(index) == 1 && target.Size() > 0 && index[0].factor%target.Size() == 0 {
		inside := ((offset % target.Size()) + target.Size()) % target.Size()
		p := walk(target, inside, width, false)
		word := s.indexText(index[0], target.Size(), (offset-inside)/target.Size(), depth)
		return expression{text: grouped(base.text) + "[" + word + "]" + p.path, typ: p.typ, choice: p.choice}, true
	}
	p := walk(target, offset, width, true)
	text := dereference(base.text, "", p.path, base.typ.Reference())
	return expression{text: s.fillIndex(text, index, p, depth), typ: p.typ, choice: p.choice}, true
}

// indexText writes an index, plus a constant part.
func (s *backwardSlice) indexText(t term, elem, plus int64, depth int) string {
	word := "..."
	if e, ok := s.describe(t.node, depth+1); ok && t.factor == elem && !strings.HasPrefix(e.text, "&") {
		word = e.text
		if plus != 0 {
			word += fmt.Sprintf("%+d", plus)
		}
	}
	return word
}

// fillIndex puts the variable that is the index into a path with one unknown
// index.
func (s *backwardSlice) fillIndex(text string, index []term, p part, depth int) string {
	if len(index) != 1 || strings.Count(text, "[...]") != 1 {
		return text
	}
	e, ok := s.describe(index[0].node, depth+1)
	if !ok || strings.HasPrefix(e.text, "&") {
		return text
	}
	return strings.Replace(text, "[...]", "["+e.text+"]", 1)
}

// placeInVariable names a place in static data or in a variable of the
// frame, with or without an index.
func (s *backwardSlice) placeInVariable(terms []term, offset int64, size, pos, depth int) (expression, bool) {
	width := max(size, 1)
	if s.isDataOrTLS(uint64(offset)) || len(terms) == 0 && s.isStatic(uint64(offset)) {
		g := s.nameData(evidence.Addr(offset), width, len(terms) > 0, s.codeAt(pos))
		if len(terms) == 0 {
			return expression{text: g.name, typ: g.typ, choice: g.choice}, true
		}
		return expression{text: s.fillIndex(g.name, terms, part{}, depth), typ: g.typ, choice: g.choice}, true
	}
	for i, t := range terms {
		start, ok := s.frameAddress(t)
		if !ok {
			continue
		}
		addr := start + evidence.Addr(offset)
		v, ok := s.memoryVariable(addr, pos)
		if !ok {
			continue
		}
		rest := append(append([]term(nil), terms[:i]...), terms[i+1:]...)
		p := walk(v.Type, int64(addr-v.addr), int64(width), len(rest) > 0)
		text := v.Name + p.path
		if len(rest) > 0 {
			text = s.fillIndex(text, rest, p, depth)
		}
		return expression{text: text, typ: p.typ, choice: p.choice}, true
	}
	return expression{}, false
}

// frameAddress is a register that points into the function's own frame.
func (s *backwardSlice) frameAddress(t term) (evidence.Addr, bool) {
	n := t.node
	if t.factor != 1 || n.reg != x86.RBP && n.reg != x86.RSP {
		return 0, false
	}
	v, ok := n.best()
	return evidence.Addr(v), ok && s.onStack(evidence.Addr(v))
}

// calledName names the function that the call at d goes to.
func (s *backwardSlice) calledName(d int) string {
	if d < 0 || d >= len(s.a.flow.insts) {
		return ""
	}
	in := &s.a.flow.insts[d]
	if !in.HasTarget {
		return ""
	}
	if name, ok := s.stubName(evidence.Addr(in.Target)); ok {
		return name // and not the variant that was chosen for this processor
	}
	to := s.callee(evidence.Addr(in.Target))
	if sym, ok := s.process.SymbolAt(to); ok {
		return sym.Name
	}
	return strings.TrimSuffix(nameOf(s.process, to), "()")
}

// resultOf begins the words for what a call returned.
const resultOf = "the result of "

// lastName is a function's name without its parameters, namespaces and
// classes: "operator*" for "std::unique_ptr<int>::operator*() const".
func lastName(function string) string {
	name := evidence.ShortName(function)
	if i := strings.LastIndex(name, "::operator"); i >= 0 {
		return name[i+len("::"):]
	}
	depth := 0
	for i := len(name) - 1; i > 0; i-- {
		switch name[i] {
		case '>':
			depth++
		case '<':
			depth--
		case ':':
			if depth == 0 && name[i-1] == ':' {
				return name[i+1:]
			}
		}
	}
	return name
}

// operandText is a memory operand in Intel syntax.
func operandText(m *x86.Memory) string {
	var b strings.Builder
	switch m.Segment {
	case x86.SegFS:
		b.WriteString("fs:")
	case x86.SegGS:
		b.WriteString("gs:")
	}
	b.WriteByte('[')
	sep := ""
	if m.Base.General() || m.Base == x86.RIP {
		b.WriteString(m.Base.String())
		sep = "+"
	}
	if m.Index.General() {
		fmt.Fprintf(&b, "%s%s*%d", sep, m.Index, m.Scale)
		sep = "+"
	}
	switch {
	case sep == "":
		fmt.Fprintf(&b, "%#x", uint64(m.Disp))
	case m.Disp != 0:
		fmt.Fprintf(&b, "%+#x", m.Disp)
	}
	b.WriteByte(']')
	return b.String()
}
