package staticscan

import (
	"slices"
	"strconv"
	"strings"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
	"diagnose/image/x86"
)

// maxChecks bounds the branches that may have led to a call, and the blocks on the way from each.
const maxChecks = 8

// Checked goes back from a call that never returned, such as those of __assert_fail, abort and Rust's panics, to the
// conditional branch by which the function came to it, and says what was compared, with which values, and where these came
// from. frame is that of the function with the call. Where the function calls it always, the branch is its caller's,
// as far as that is in the program's own code. ok is false where several branches lead there and it is not certain
// which did, or where the comparison is none of integers.
func Checked(in Input, frame int) (evidence.Check, bool) {
	if in.Process == nil {
		return evidence.Check{}, false
	}
	w := newWorld(&in)
	for at := frame; at >= 0 && at < min(frame+maxChecks, len(in.Frames)); at++ {
		f := &in.Frames[at]
		if !in.isOwn(f) || f.Trust.Guess() {
			break
		}
		s, err := w.newSlice(&in, at, f.Registers)
		if err != nil || s.now < 0 {
			break
		}
		if call := &s.a.flow.insts[s.now]; at > frame && !s.callsInner() || at == frame && !w.endsAt(call) {
			break
		}
		s.a = w.withoutDeadEnds(s.a)
		search := checkSearch{s}
		if branches, always := search.branchesTo(s.now); !always {
			return search.checked(branches)
		}
	}
	return evidence.Check{}, false
}

// checkSearch is the search in one frame.
type checkSearch struct{ *backwardSlice }

// branchTaken is a conditional branch and its outcome. jumps: it went to its target, and not to the next instruction.
type branchTaken struct {
	inst  int
	jumps bool
}

// branchesTo are the conditional branches that may have led to an instruction without another one in between. always: the
// function comes there from its entry without any. Both are empty where the ways are not known.
func (s checkSearch) branchesTo(now int) (list []branchTaken, always bool) {
	g := s.a.flow.graph
	if slices.ContainsFunc(g.blocks, func(b block) bool { return b.indirect }) {
		return nil, false // a table may lead to any block
	}
	seen := map[int]bool{}
	work := []int{g.blockOf[now]}
	for len(work) > 0 {
		b := work[0]
		work = work[1:]
		if seen[b] {
			continue
		}
		seen[b] = true
		end := g.blocks[b].end
		if b == g.blockOf[now] {
			end = now
		}
		if slices.ContainsFunc(g.insts[g.blocks[b].first:end], func(in x86.Inst) bool { return s.endsAt(&in) }) {
			return nil, false // the rest of the block is reached in another way, as by an exception
		}
		if b == g.entry {
			return nil, len(list) == 0 && len(work) == 0
		}
		if len(g.blocks[b].prev) == 0 || slices.Contains(g.orphans, b) {
			return nil, false
		}
		for _, p := range g.blocks[b].prev {
			last := g.blocks[p].end - 1
			in := &g.insts[last]
			if in.Flow == x86.FlowBranch {
				list = append(list, branchTaken{last, in.Target == g.insts[g.blocks[b].first].PC})
			} else {
				work = append(work, p)
			}
		}
		if len(list) > maxChecks || len(seen) > maxChecks {
			return nil, false
		}
	}
	return list, false
}

// checked describes the branch that led to the call: the only one, or the only one whose comparison comes out so with the values
// that are known, if it comes out otherwise for all others.
func (s checkSearch) checked(branches []branchTaken) (evidence.Check, bool) {
	var found *comparison
	for _, b := range branches {
		c := s.comparison(b, len(branches) == 1)
		if c == nil {
			return evidence.Check{}, false
		}
		holds, known := c.holds()
		certain := known && s.still(c.left, 0) && s.still(c.right, 0)
		switch several := len(branches) > 1; {
		case several && certain && !holds:
			continue // another branch led there
		case certain && !holds, found != nil, several && !known:
			return evidence.Check{}, false
		}
		found = c
	}
	if found == nil {
		return evidence.Check{}, false
	}
	check := evidence.Check{Relation: found.relation, Left: s.operandFacts(found, found.left), Right: s.operandFacts(found, found.right), Proof: evidence.FromCore}
	if len(branches) > 1 {
		check.Proof = evidence.Inferred
		for _, o := range []*evidence.CheckedOperand{&check.Left, &check.Right} {
			if o.Proof != "" {
				o.Proof = evidence.Inferred
			}
		}
	}
	search := &resultSearch{processView: s.processView, in: s.in}
	check.Site = search.ownSite(evidence.Addr(s.a.flow.insts[found.inst].PC))
	check.Instruction = s.a.flow.insts[found.inst].Text()
	return check, check.Left.Name != "" || check.Left.Value != "" || len(check.Left.Origin) > 0
}

// comparison is what a branch tested: left and right had the relation.
type comparison struct {
	inst        int
	left, right *node
	size        int
	relation    evidence.Relation
	signed      bool
	// mask: only these bits of left were looked at; 0: all.
	mask uint64
}

// relations are those that the conditions of jcc, setcc and cmovcc mean after cmp (Intel SDM volume 2, Jcc), and whether they take
// the operands for signed numbers.
var relations = map[string]struct {
	relation evidence.Relation
	signed   bool
}{
	"e": {evidence.Equal, true}, "ne": {evidence.NotEqual, true},
	"l": {evidence.Less, true}, "ge": {evidence.AtLeast, true}, "le": {evidence.AtMost, true}, "g": {evidence.Greater, true},
	"b": {evidence.Less, false}, "ae": {evidence.AtLeast, false}, "be": {evidence.AtMost, false}, "a": {evidence.Greater, false},
}

// maxDecided bounds how often the outcome of a comparison was kept as a number and compared again.
const maxDecided = 4

// comparison is what a branch tested, behind numbers that only keep the outcome of another comparison; nil if the flags were not set by
// a comparison of integers in the same block. certain: it is the one that led to the call.
func (s checkSearch) comparison(b branchTaken, certain bool) *comparison {
	c := s.flagsFrom(b.inst, s.a.flow.insts[b.inst].Op[1:], b.jumps)
	for range maxDecided {
		if c == nil {
			return nil
		}
		if certain {
			s.settle(c)
		}
		inner := s.decidedBy(c)
		if inner == nil {
			break
		}
		c = inner
	}
	return c
}

// decidedBy is the comparison whose outcome the left side of another one is, by setcc or cmovcc; nil: it is none.
func (s checkSearch) decidedBy(c *comparison) *comparison {
	if c.right.op != opConst {
		return nil
	}
	n := c.left
	for range maxDepth {
		if n.op == opLoad && n.stored != nil {
			n = n.stored
		} else if n.op == opCopy && !n.advanced {
			n = n.a
		} else if bit := s.lowestBit(n); bit != nil {
			n = bit
		} else {
			break
		}
	}
	if n.def < 0 || n.likely {
		return nil
	}
	in := &s.a.flow.insts[n.def]
	var yes, no uint64
	condition, isSet := strings.CutPrefix(in.Op, "set")
	switch {
	case isSet:
		yes, no = 1, 0
	case n.op == opMade && n.choice && n.a.op == opConst && n.b.op == opConst:
		condition = strings.TrimPrefix(in.Op, "cmov")
		yes, no = uint64(n.b.n), uint64(n.a.n)
	default:
		return nil
	}
	right, _ := c.value(c.right)
	ifYes, ifNo := c.relation.Holds(c.cut(c.left, yes), right, c.signed), c.relation.Holds(c.cut(c.left, no), right, c.signed)
	if ifYes == ifNo {
		return nil
	}
	return s.flagsFrom(n.def, condition, ifYes)
}

// lowestBit is what a byte was before all but its lowest bit, and perhaps others, were cleared; nil: it was not made so.
func (s checkSearch) lowestBit(n *node) *node {
	if n.op != opLost || n.def < 0 {
		return nil
	}
	in := &s.a.flow.insts[n.def]
	left, ok := explicit(in, 0)
	mask, two := explicit(in, 1)
	if !ok || !two || in.Op != "and" || !mask.IsImm || mask.Imm&1 == 0 || left.IsMemory || !left.Reg.General() {
		return nil
	}
	return s.register(n.def, left.Reg, 0)
}

// flagsFrom reads the instruction that set the flags of another one, which uses them by a condition that was found true, or false.
func (s checkSearch) flagsFrom(user int, condition string, found bool) *comparison {
	g := s.a.flow.graph
	first := g.blocks[g.blockOf[user]].first
	at := user - 1
	for ; at >= first; at-- {
		if op := g.insts[at].Op; !strings.HasPrefix(op, "mov") && !strings.HasPrefix(op, "set") && !strings.HasPrefix(op, "cmov") && op != "lea" && op != "nop" {
			break
		}
	}
	if at < first {
		return nil
	}
	in := &g.insts[at]
	left, ok := explicit(in, 0)
	if ok && in.Op == "neg" {
		return s.negated(at, left, condition, found)
	}
	right, two := explicit(in, 1)
	if !ok || !two || in.Op != "cmp" && in.Op != "test" || guardCheck(in) {
		return nil
	}
	c := &comparison{inst: at, size: left.Size, left: s.operandAt(at, left), right: constNode(0, at)}
	if zero := c.left; in.Op == "cmp" && zero != nil && zero.op == opConst && zero.n == 0 {
		if n := s.negated(at, right, condition, found); n != nil {
			return n
		}
	}
	withZero := in.Op == "test" || right.IsImm && right.Imm == 0
	switch { // the sign of a difference from 0
	case withZero && condition == "s":
		condition = "l"
	case withZero && condition == "ns":
		condition = "ge"
	}
	how, known := relations[condition]
	c.relation, c.signed = how.relation, how.signed
	switch {
	case in.Op == "cmp":
		c.right = s.operandAt(at, right)
	case !how.signed:
		return nil // there is no carry
	case !sameRegister(left, right):
		if !right.IsImm || how.relation != evidence.Equal && how.relation != evidence.NotEqual {
			return nil
		}
		c.mask = uint64(right.Imm) & sizeMask(left.Size)
	}
	if !known || c.left == nil || c.right == nil {
		return nil
	}
	if !found {
		c.relation = c.relation.Opposite()
	}
	return c
}

// negated is a comparison with the least number, for which 0 minus it overflows, and for nothing else. Rust marks values that are not there
// by such numbers. nil: another condition of neg was asked for.
func (s checkSearch) negated(at int, of *x86.Operand, condition string, found bool) *comparison {
	if condition != "o" && condition != "no" || of.Size < 4 {
		return nil
	}
	c := &comparison{inst: at, size: of.Size, left: s.operandAt(at, of), right: constNode(1<<(8*of.Size-1), at), relation: evidence.NotEqual, signed: true}
	if found == (condition == "o") {
		c.relation = evidence.Equal
	}
	if c.left == nil {
		return nil
	}
	return c
}

// settle gives the left side the value that follows from the comparison: equal to what the right side was.
func (s checkSearch) settle(c *comparison) {
	v, known := c.value(c.right)
	if !known || !s.still(c.right, 0) || c.relation != evidence.Equal || c.mask != 0 {
		return
	}
	n := *c.left
	if now, has := c.value(&n); !has || now != v {
		n.computed, n.isComputable = v&sizeMask(c.size), true
	}
	n.settled = true
	c.left = &n
}

// operandAt is what an operand of an instruction held; nil: it is in no general register, and in no memory that can be followed.
func (s *backwardSlice) operandAt(at int, op *x86.Operand) *node {
	switch {
	case op.IsImm:
		return constNode(uint64(op.Imm), at)
	case op.IsMemory:
		return s.load(at, op.Memory, op.Size, false, 0)
	case op.Reg.General() && !highByte(op) && !s.partly(at, op):
		return s.register(at, op.Reg, 0)
	}
	return nil
}

// highByte reports whether an operand is bits 8 to 15 of a register: ah, bh, ch or dh.
func highByte(op *x86.Operand) bool { return op.Size == 1 && strings.HasSuffix(op.RegName, "h") }

// partly reports whether a register that an instruction uses has parts from different instructions: one wrote less than is used.
func (s *backwardSlice) partly(at int, op *x86.Operand) bool {
	return slices.ContainsFunc(s.definitions(at, op.Reg), func(d int) bool {
		if d < 0 {
			return false
		}
		dst, ok := explicit(&s.a.flow.insts[d], 0)
		return ok && !dst.IsMemory && dst.Reg == op.Reg && (highByte(dst) || dst.Size < min(op.Size, 4))
	})
}

func sizeMask(size int) uint64 {
	if size <= 0 || size >= 8 {
		return ^uint64(0)
	}
	return 1<<(8*size) - 1
}

// value is a side of the comparison in its width.
func (c *comparison) value(n *node) (uint64, bool) {
	v, known := n.best()
	return c.cut(n, v), known
}

// cut is a number as the comparison saw it on the side of n.
func (c *comparison) cut(n *node, v uint64) uint64 {
	v = extend(v, c.size, c.signed)
	if c.mask != 0 && n == c.left {
		v &= c.mask
	}
	return v
}

// holds reports whether the values that are known now have the relation.
func (c *comparison) holds() (holds, known bool) {
	left, ok := c.value(c.left)
	right, both := c.value(c.right)
	return c.relation.Holds(left, right, c.signed), ok && both
}

// operandFacts describes a side of a comparison, and where its value came from.
func (s checkSearch) operandFacts(c *comparison, n *node) evidence.CheckedOperand {
	v, known := c.value(n)
	if n.op == opConst {
		if v == 0 {
			return evidence.CheckedOperand{Constant: true, Value: "0"}
		}
		other, _ := s.describe(c.left, 0)
		return evidence.CheckedOperand{Constant: true, Value: c.text(v, other.typ)}
	}
	o := evidence.CheckedOperand{Register: regName(n.reg)}
	e, ok := s.describe(n, 0)
	if ok && !strings.Contains(e.text, "+0x") { // else it is a part of what has the name
		o.Name, o.Type = e.text, typeName(e.typ)
	}
	if n == c.left {
		o.Mask = c.mask
	}
	if width := min(c.size, narrowest(n)); e.typ != nil && int64(width) < e.typ.Size() && o.Mask == 0 {
		o.Mask = sizeMask(width)
	}
	t := &originSearch{in: s.in, processView: s.processView, hops: defaultHops, named: true}
	if known {
		o.Value, o.Proof = c.text(v, e.typ), evidence.Inferred
		if s.still(n, 0) {
			o.Proof = evidence.FromCore
			b, _ := n.best()
			t.blame.Value = addrOf(b)
		}
	}
	t.walkBack(s.backwardSlice, n)
	o.Origin = t.blame.Steps
	return o
}

// narrowest is the least width in bytes of the copies that a value is one of.
func narrowest(n *node) int {
	width := 8
	for range maxDepth {
		if n.op != opCopy || n.a == nil {
			break
		}
		width = min(width, max(n.size, 1))
		n = n.a
	}
	return width
}

// text is a value as the program would write it: a number by its type or in the comparison's width, an address in hexadecimal digits.
func (c *comparison) text(v uint64, typ debuginfo.Type) string {
	const small = 1 << 16 // no memory is mapped below
	kind := debuginfo.KindInt
	if typ != nil {
		kind = typ.Kind()
	}
	switch {
	case kind == debuginfo.KindUint:
		return strconv.FormatUint(extend(v, c.size, false), 10)
	case typ != nil && kind != debuginfo.KindInt:
		return amount(extend(v, c.size, false), typ)
	case typ != nil:
		return amount(v, typ)
	case c.size == 8 && v >= small && evidence.Addr(v).Canonical():
		return evidence.Addr(v).String()
	case c.signed:
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatUint(v, 10)
}
