package staticscan

import (
	"errors"
	"fmt"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
	"diagnose/image/x86"
)

// OriginOptions bounds the way back.
type OriginOptions struct {
	// Hops is how many callers an argument is followed into; 0 is 8.
	Hops int
	// Before is what memory held that was overwritten since the code that is
	// looked at read it; nil: nothing is known to have been.
	Before *Overwritten
}

const (
	defaultHops = 8
	maxSteps    = 32
)

const notKnown = "where the bad value came from is not known: "

// Origin finds the operand that made the innermost frame's instruction fail
// and goes back to where its value came from. The Blame has no Role when the
// failure is of no such kind (an abort, a full stack); the error says why the
// failing instruction could not be looked at.
func Origin(in Input, opts OriginOptions) (Blame, error) {
	if in.Process == nil || len(in.Frames) == 0 {
		return Blame{}, errors.New(notKnown + "no process or no frames")
	}
	if opts.Hops <= 0 {
		opts.Hops = defaultHops
	}
	t := &originSearch{in: &in, processView: newWorld(&in), hops: opts.Hops}
	if err := t.start(); err != nil {
		return Blame{}, fmt.Errorf(notKnown+"%w", err)
	}
	return t.blame, nil
}

// originSearch is the work of one Origin.
type originSearch struct {
	*processView
	in    *Input
	hops  int
	blame Blame
	guess bool // a frame on the way was guessed
	// heap says that blame.Cell is no word of a stack frame.
	offStack bool
	named    bool
	// bad is the summand of an address that is to blame.
	bad *node
	// index: it is the way back of an array's index.
	index bool
}

func (t *originSearch) start() error {
	first := &t.in.Frames[0]
	sig := t.in.signal()
	if !t.executable(first.PC()) {
		return t.badTarget(sig)
	}
	s, err := t.newSlice(t.in, 0, first.Registers)
	if err != nil {
		return err
	}
	if s.now < 0 {
		return fmt.Errorf("the code before %v does not decode to it", first.PC())
	}
	c, ok := s.findCulprit(sig)
	if !ok {
		return nil
	}
	t.describeFailure(s, c)
	t.follow(s, c)
	return nil
}

func (t *originSearch) executable(pc evidence.Addr) bool {
	m := t.process.MappingAt(pc)
	return m != nil && m.Executable()
}

// place says which function the blame is in the terms of.
func (t *originSearch) place(s *backwardSlice) {
	t.blame.Site = t.site(evidence.Addr(s.a.flow.insts[max(s.now, 0)].PC))
	t.blame.Function = t.blame.Site.Function
	if t.blame.Function == "" {
		t.blame.Function = s.a.function.name
	}
}

// describeFailure names the accessed memory and the bad value, if the
// failing code is the program's own.
func (t *originSearch) describeFailure(s *backwardSlice, c culprit) {
	t.blame.Role = c.role
	t.place(s)
	if c.operand != nil {
		t.describeAccess(s, c.operand)
	}
	if c.reg.General() {
		t.blame.Register = c.reg.String()
		t.blame.Pointer = c.reg.String()
		if v, ok := s.known(c.reg); ok {
			t.blame.Value = addrOf(v)
		}
		t.describeValue(s, s.register(s.now, c.reg, 0), c.role)
	}
	if c.inCell {
		t.blame.Pointer, t.blame.PointerType = t.blame.Accessed, t.blame.AccessedType
		t.blame.Accessed, t.blame.AccessedType = "", ""
	}
	t.named = t.in.isOwn(s.frame)
	if !t.named {
		t.blame.Through = t.calledByProgram()
	}
	if t.blame.Through != "" {
		t.forgetLibraryNames(c)
	} else if c.operand != nil && t.blame.Role == RoleIndex {
		if addr, known := c.operand.Memory.Address(s.known); known {
			t.blame.Beyond = t.outside(s, s.now, s.addressOf(s.now, &c.operand.Memory, 0), evidence.Addr(addr), c.operand.Size)
			if t.blame.Beyond != nil {
				t.blame.Beyond.Writes = c.operand.Access.Writes()
			}
		}
	}
}

// forgetLibraryNames takes back what a library function calls the bad value:
// its variables say nothing in the program's terms.
func (t *originSearch) forgetLibraryNames(c culprit) {
	b := &t.blame
	b.AccessedType, b.PointerType, b.Result = "", "", ""
	if c.operand != nil {
		b.Accessed = operandText(&c.operand.Memory)
	}
	switch {
	case c.inCell:
		b.Pointer, b.Accessed = b.Accessed, ""
	case c.reg.General():
		b.Pointer = c.reg.String()
	}
}

func addrOf(v uint64) *evidence.Addr {
	a := evidence.Addr(v)
	return &a
}

// follow starts the way back from the culprit.
func (t *originSearch) follow(s *backwardSlice, c culprit) {
	switch {
	case c.reg.General():
		n := s.register(s.now, c.reg, 0)
		t.registerStep(s, c.reg, n)
		t.walkBack(s, n)
	case c.inCell:
		n := s.culpritNode(c)
		if n == nil {
			return
		}
		if v, ok := n.best(); ok && t.blame.Value == nil {
			t.blame.Value = addrOf(v)
		}
		t.walkBack(s, n)
	default:
		t.absoluteStep(s, c)
	}
}

func (t *originSearch) absoluteStep(s *backwardSlice, c culprit) {
	step := t.step(s, s.now, evidence.OriginConstant)
	step.Text = fmt.Sprintf("the address is fixed in the instruction: %s", t.blame.Accessed)
	step.Symbol = t.blame.Accessed
	step.Proof = evidence.FromCore
	step.Text = evidence.Say(step.Text)
	t.blame.Steps = append(t.blame.Steps, step)
}

// step begins an origin step at an instruction.
func (t *originSearch) step(s *backwardSlice, at int, kind evidence.OriginKind) evidence.OriginStep {
	step := evidence.OriginStep{Kind: kind, Proof: evidence.Inferred}
	if s != nil && at >= 0 && at < len(s.a.flow.insts) {
		site := t.site(evidence.Addr(s.a.flow.insts[at].PC))
		step.Site = &site
		step.Instruction = s.a.flow.insts[at].Text()
	}
	return step
}

func (t *originSearch) add(step evidence.OriginStep) {
	if t.guess && step.Proof == evidence.FromCore {
		step.Proof = evidence.Inferred
	}
	step.Text = evidence.Say(step.Text)
	t.blame.Steps = append(t.blame.Steps, step)
}

func (t *originSearch) lose(why string, s *backwardSlice, at int) {
	step := t.step(s, at, evidence.OriginUnknown)
	step.Text = why
	t.add(step)
}

func (t *originSearch) registerStep(s *backwardSlice, r x86.Reg, n *node) {
	step := t.step(s, s.now, evidence.OriginRegister)
	step.Register = r.String()
	step.Text = r.String() + " had the bad value"
	if v, ok := n.best(); ok {
		step.Value = addrOf(v)
		step.Text = fmt.Sprintf("%s was %#x", r, v)
	}
	if n.isExact {
		step.Proof = evidence.FromCore
	}
	if v, ok := s.registerVariable(r, s.now); ok {
		step.Symbol, step.Type = v.Name, typeName(v.Type)
		step.Text += ", the variable " + v.Name
	} else if e, ok := s.describe(n, 0); ok {
		step.Symbol, step.Type = e.text, typeName(e.typ)
		step.Text += ", " + valueOf(e)
	}
	t.add(step)
}

func valueOf(e expression) string {
	if e.result {
		return e.text
	}
	return "the value of " + e.text
}

// walkBack takes the steps from a node in one frame, and on into the callers.
func (t *originSearch) walkBack(s *backwardSlice, n *node) {
	for n != nil && len(t.blame.Steps) < maxSteps {
		t.guess = t.guess || n.likely
		switch n.op {
		case opCopy:
			if n.advanced && !n.unmoved() {
				t.advancedStep(s, n)
			}
			n = n.a
		case opLoad:
			if len(t.blame.Loads) < maxSteps {
				t.blame.Loads = append(t.blame.Loads, t.loadOf(s, n))
			}
			t.cellStep(s, n)
			if n.at.kind == stack && n.stored == nil {
				t.unstored(s, n)
			}
			n = n.stored
		case opSum, opProduct:
			n = t.sumStep(s, n)
		case opMade:
			t.madeStep(s, n)
			t.blame.Split = t.blame.Split || !n.choice && s.ofTwo(n)
			n = s.madeFrom(n)
		case opEntry:
			s, n = t.argumentStep(s, n)
		default:
			t.lastStep(s, n)
			return
		}
	}
}

// unstored ends the way at a word of the frame that the function itself put nothing into.
func (t *originSearch) unstored(s *backwardSlice, n *node) {
	if call := s.givenTo(n); call >= 0 {
		name := "a function"
		if called := s.calledName(call); called != "" {
			name = evidence.ShortName(called)
		}
		t.lose(name+", which was given its address, may have put it there", s, call)
		return
	}
	t.lose("what put it there is not known: several stores, a callee that was given its address, or the caller", s, -1)
}

// givenTo is the call that was given the address of a word of the frame, or of the variable that it is in, if by every way that is the
// last one before the word is read, and nothing is stored there since; -1 if there is none.
func (s *backwardSlice) givenTo(n *node) int {
	low := n.at.off
	if addr, ok := s.location(n); ok {
		if v, ok := s.memoryVariable(addr, n.pos); ok {
			low -= int64(addr - v.addr)
		}
	}
	const mostCalls = 256
	calls := 0
	hits := s.a.flow.reaching(n.pos, func(i int) bool {
		if s.a.flow.insts[i].Flow != x86.FlowCall {
			return s.storesInto(i, n.at, n.size)
		}
		if calls++; calls > mostCalls {
			return true
		}
		st := s.a.flow.before(i)
		for _, r := range x86.ArgumentRegisters {
			if v := st.regs[r]; v.kind == stack && v.base == n.at.base && !v.varies && v.off >= low && v.off <= n.at.off {
				return true
			}
		}
		return false
	})
	if calls > mostCalls || len(hits) != 1 || hits[0] < 0 || s.a.flow.insts[hits[0]].Flow != x86.FlowCall {
		return -1
	}
	return hits[0]
}

func (t *originSearch) advancedStep(s *backwardSlice, n *node) {
	step := t.step(s, n.def, evidence.OriginRegister)
	step.Register = regName(n.reg)
	step.Text = "a loop moved it on by constant steps from its first value"
	t.add(step)
}

func regName(r x86.Reg) string {
	if r.General() {
		return r.String()
	}
	return ""
}

// cellStep says which memory the value was loaded from.
func (t *originSearch) cellStep(s *backwardSlice, n *node) {
	step := t.step(s, n.def, evidence.OriginCell)
	step.Register = regName(n.reg)
	addr, ok := s.location(n)
	e, described := s.describeLoad(n, 0)
	name := "memory"
	switch {
	case described:
		step.Symbol, step.Type = e.text, typeName(e.typ)
		name = e.text
	case n.at.kind == stack:
		name = "the stack frame"
	}
	step.Text = "it was loaded from " + name
	if ok {
		step.Cell = &addr
		step.Text += fmt.Sprintf(" at %v", addr)
		t.judgeCell(&step, n, e.typ)
		if n.at.kind != stack || t.in.isOwn(s.frame) { // else a library put an argument aside there
			t.keepCell(s, n, step, e.typ)
		}
	} else {
		step.Text += ", whose address the dead process no longer tells"
	}
	t.add(step)
}

// judgeCell compares what the cell holds with what was loaded from it.
func (t *originSearch) judgeCell(step *evidence.OriginStep, n *node, typ debuginfo.Type) {
	held := amount(n.computed, typ)
	switch {
	case !n.isComputable:
		step.Text += ", which can no longer be read"
	case n.changed():
		step.Text += fmt.Sprintf(", which now holds %s, so it changed since", held)
		step.Value = addrOf(n.computed)
	default:
		step.Value = addrOf(n.computed)
		if n.isExact {
			step.Proof = evidence.FromCore
			step.Text += fmt.Sprintf(", which still holds %s", held)
			return
		}
		step.Text += fmt.Sprintf(", which holds %s now", held)
		if v := t.blame.Value; v != nil && uint64(*v) == n.computed {
			step.Proof = evidence.FromCore
		}
	}
}

// keepCell remembers the cell that later stages watch: the first one on the
// way that is no word of a stack frame, or else the first.
func (t *originSearch) keepCell(s *backwardSlice, n *node, step evidence.OriginStep, typ debuginfo.Type) {
	onStack := n.at.kind == stack || t.onStack(*step.Cell)
	if t.blame.Cell != nil && (t.offStack || onStack) {
		return
	}
	b := &t.blame
	b.Cell, b.CellSize, b.CellName, b.CellType, b.CellTyped = step.Cell, n.size, step.Symbol, step.Type, typ
	b.CellHolds = step.Proof == evidence.FromCore
	if b.CellName == "" {
		b.CellName = fmt.Sprintf("[%v]", *step.Cell)
	}
	if step.Site != nil {
		b.Loaded = *step.Site
	}
	t.offStack = !onStack
	b.Outside = t.outside(s, n.def, n.a, *step.Cell, n.size)
}

// madeStep says which instruction made the value, of what.
func (t *originSearch) madeStep(s *backwardSlice, n *node) {
	step := t.step(s, n.def, evidence.OriginRegister)
	step.Register = regName(n.reg)
	how := "it was computed from "
	if n.choice {
		how = "it was chosen of "
	}
	step.Text = how + s.nodeText(n.a)
	if n.b != nil {
		step.Text += " and " + s.nodeText(n.b)
	}
	if n.def >= 0 {
		step.Text += " by " + s.a.flow.insts[n.def].Op
	}
	t.add(step)
}

// madeFrom is what to go on with of what a value was made of: the side of a choice
// that gave it, or the one source of both. Of two that differ in an operation it is
// the one operated on, of a choice none.
func (s *backwardSlice) madeFrom(n *node) *node {
	if n.choice {
		if side := n.choose(); side != nil {
			return side
		}
	}
	if from := s.source(n); from != nil {
		return from
	}
	if n.choice {
		return lostNode("which of the two it was is not known")
	}
	return n.a
}

// ofTwo reports whether a value was made of two others that are no constants and do not come from one place.
func (s *backwardSlice) ofTwo(n *node) bool {
	return n.b != nil && n.a.varies(0) && n.b.varies(0) && s.source(n) == nil
}

// leads reports that the summand to blame went into one operand and not into the
// other.
func (t *originSearch) leads(to, other *node) bool {
	return t.bad != nil && t.bad.within(to, 0) && !t.bad.within(other, 0)
}

// sumStep goes on with the operand that is to blame, or else with the one that is
// the address, by its type or, for want of one, by its place.
func (t *originSearch) sumStep(s *backwardSlice, n *node) *node {
	step := t.step(s, n.def, evidence.OriginRegister)
	step.Register = regName(n.reg)
	next, other := n.a, n.b
	if n.op == opProduct {
		step.Text = fmt.Sprintf("it was computed as %s * %d", s.nodeText(next), n.n)
	} else {
		if t.leads(n.b, n.a) || !t.leads(n.a, n.b) && s.isPointerNode(n.b) && !s.isPointerNode(n.a) {
			next, other = n.b, n.a
		}
		t.blame.Split = t.blame.Split || s.ofTwo(n) && !t.leads(next, other)
		step.Text = "it was computed as " + s.nodeText(next) + " + " + s.nodeText(other)
	}
	if v, ok := n.best(); ok {
		step.Value = addrOf(v)
	}
	if n.def >= 0 && n.reg.General() {
		t.add(step)
	}
	return next
}

func (s *backwardSlice) isPointerNode(n *node) bool {
	if e, ok := s.describe(n, 0); ok && e.typ != nil {
		return e.typ.Kind() == debuginfo.KindPointer
	}
	return n.op == opConst && s.isDataOrTLS(uint64(n.n))
}

// nodeText is an expression with its value.
func (s *backwardSlice) nodeText(n *node) string {
	v, known := n.best()
	if n.op == opConst {
		if e, ok := s.describeConst(uint64(n.n), n); ok && n.n != 0 {
			return e.text
		}
		return fmt.Sprintf("%#x", n.n)
	}
	text := regName(n.reg)
	var typ debuginfo.Type
	if e, ok := s.describe(n, 0); ok {
		text, typ = e.text, e.typ
	}
	switch {
	case text == "" && known:
		return amount(v, typ)
	case text == "":
		return "something unknown"
	case known:
		return fmt.Sprintf("%s (%s)", text, amount(v, typ))
	}
	return text
}

// lastStep ends the way at a constant, a call's result, or where it is lost.
func (t *originSearch) lastStep(s *backwardSlice, n *node) {
	switch n.op {
	case opConst:
		step := t.step(s, n.def, evidence.OriginConstant)
		step.Value = addrOf(uint64(n.n))
		step.Text = fmt.Sprintf("the program set it to %#x", uint64(n.n))
		if e, ok := s.describeConst(uint64(n.n), n); ok && n.n != 0 {
			step.Symbol = e.text
			step.Text = "the program set it to " + e.text
		}
		step.Proof = evidence.FromCore
		t.add(step)
	case opResult:
		t.blame.Returned = t.returned(s, n)
		step := t.step(s, n.def, evidence.OriginResult)
		step.Register = "rax"
		step.Text = "it was returned by a call through a pointer"
		if name := s.calledName(n.def); name != "" {
			step.Symbol = name
			step.Text = "it was returned by " + name
		}
		if v, ok := n.best(); ok {
			step.Value = addrOf(v)
		}
		t.add(step)
	case opLost:
		t.lose("where it came from is not known: "+n.why, s, n.def)
		t.keepWays(s, n)
	}
}

// keepWays remembers the loads that may have given a value, of which a replay
// can tell which did.
func (t *originSearch) keepWays(s *backwardSlice, n *node) {
	v, ok := n.best()
	if !ok {
		return
	}
	for _, d := range n.ways {
		if d >= 0 {
			t.blame.Ways = append(t.blame.Ways, Way{PC: evidence.Addr(s.a.flow.insts[d].PC), Value: v})
		}
	}
}
