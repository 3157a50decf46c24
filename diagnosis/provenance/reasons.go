package provenance

import (
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// Reasons are what decided that a thread reached a place: branches, the values that they tested, and what those were made of.
type Reasons struct {
	// Conditions are the branches of the program's own code, the nearest first. The first may be one of a template of the C++ library, with the
	// program's call of that as its place.
	Conditions []Condition
	// Broken are the accesses among them that broke a rule, or read memory without a value; the nearest first.
	Broken []*Way
	// Changed are places where numbers that decided lost bits or changed their sign, which they do there in few executions only; those
	// that lost bits first, and of these the nearest.
	Changed []Changed
	// Set is the way to the constant that alone decided, with nothing that decided in turn that it was stored, or that it was still
	// there; nil: other values decided as well, or what did is not known.
	Set *Way
}

// GaveUp is the step at which a thread gave up by itself, before the end of a trace: the program's own call of exit, abort or the like
// that it is in at step n, or where main returned. If the program called a template of the C++ library, which found a reason to throw an
// exception, it is the library's call. status is where the exit status was then. at is negative if the trace has no such step.
func GaveUp(t *flow.Trace, p Program, n int) (at int, status flow.Location) {
	f := newFollower(t, p)
	if n < 0 {
		return none, status
	}
	if at = f.ownCall(n); at >= 0 && t.Step(at).Inst.Flow == x86.FlowCall {
		if inner := f.callOf(n, p.OfTemplate); inner > at {
			at = inner
		}
		return at, flow.Register(t.Step(at).Thread, x86.RDI, 4)
	}
	for at = n; at >= 0; at = t.Previous(at) {
		if s := t.Step(at); s.Inst != nil && s.Inst.Flow == x86.FlowReturn && p.Own(s.PC) && p.Function(s.PC) == "main" {
			return at, flow.Register(s.Thread, x86.RAX, 4)
		}
	}
	return none, status
}

// Decided goes back from a thread's step n, at which the program gave up, to everything that it depends on: the branches that led
// there, the values that they tested, and what those were made of (a dynamic slice: Korel and Laski, IPL 1988). Of a constant of the
// code, the branch that led to it counts. whole says that the trace begins with the run. status is where the exit status is; its
// Size is 0 if there is none.
func Decided(t *flow.Trace, p Program, n int, status flow.Location, whole bool) *Reasons {
	s := &slice{follower: newFollower(t, p), frames: newFrames(t, p), whole: whole, out: &Reasons{},
		seen: map[wanted]bool{}, decided: map[int]bool{}, start: n}
	if status.Size > 0 {
		s.near = append(s.near, wanted{l: status, n: n})
	}
	s.control(n)
	s.run(&s.near)
	if len(s.constants) == 1 && !s.others && len(s.out.Broken) == 0 && s.decides(s.constants[0]) && s.straight(s.constants[0]) {
		s.out.Set = s.setBy(s.constants[0])
	}
	s.run(&s.far)
	s.keepRare()
	return s.out
}

// FirstBroken is the way to the first access that broke a rule, where that of way w broke one as well: w itself, or one by whose result
// it was decided that w's access was made. What the program does from the first on is not defined. whole is as of Decided. Accesses to
// variables are not looked at.
func FirstBroken(t *flow.Trace, p Program, w *Way, whole bool) *Way {
	if !w.broke() || w.Declared != nil {
		return w
	}
	for _, b := range Decided(t, p, w.access, flow.Location{}, whole).Broken {
		if b.broke() && b.Declared == nil && b.access < w.access {
			w = b
		}
	}
	return w
}

// wanted are bytes whose value matters, as they are before step n; or, if there are none, what decided that step n was executed.
// ignored are bits of them that do not matter; masked: perhaps others do not, either.
type wanted struct {
	l       flow.Location
	n       int
	ignored uint64
	masked  bool
}

// slice makes Reasons.
type slice struct {
	*follower
	frames *frames
	whole  bool
	start  int
	out    *Reasons
	// near are values that were tested, or of which those were made; far are those by which an address was made, and what
	// led to the branches themselves.
	near, far []wanted
	seen      map[wanted]bool
	decided   map[int]bool
	// constants are the steps that had a value in themselves and that no branch decided about; others: there are values that came from
	// elsewhere.
	constants []int
	others    bool
}

// The bounds of a slice.
const (
	mostWanted = 40000
	mostBroken = 4
)

// run takes values until there are no more of this list, or of the near ones.
func (s *slice) run(list *[]wanted) {
	for len(*list)+len(s.near) > 0 && len(s.seen) < mostWanted && len(s.out.Broken) < mostBroken {
		from := &s.near
		if len(s.near) == 0 {
			from = list
		}
		x := (*from)[0]
		*from = (*from)[1:]
		if !s.seen[x] {
			s.seen[x] = true
			s.take(x)
		}
	}
	if len(*list) > 0 {
		s.others = true
	}
}

// control adds what the branch tested that decided that step n was executed.
func (s *slice) control(n int) {
	at, known := s.frames.decider(n)
	if at == none {
		if !known && !s.whole {
			s.others = true
		}
		return
	}
	s.branch(at)
}

// jumpedBy is the storage from which an indirect jump takes its address.
func jumpedBy(inst *x86.Inst) (list []transfer.Place) {
	for k := range inst.Operands {
		switch o := &inst.Operands[k]; {
		case o.IsMemory:
			list = append(list, transfer.Place{Space: transfer.Memory, Num: uint8(k), Size: o.Size})
		case o.Reg.General() && !o.Implicit:
			list = append(list, transfer.Place{Space: transfer.General, Num: uint8(o.Reg), Size: 8})
		}
	}
	return list
}

// take looks at what gave bytes their value.
func (s *slice) take(x wanted) {
	if x.l.Size == 0 {
		s.control(x.n)
		return
	}
	if x.l.Space == transfer.General && x86.Reg(x.l.Num) == x86.RSP {
		return
	}
	d := s.trace.Define(x.l, x.n)
	s.rest(x, d.Part)
	if x = x.part(d.Part); !x.matters() {
		return
	}
	if s.contradicted(x.l, x.n, d) {
		s.others = true
		return
	}
	if s.unsetAt(x, d) {
		return
	}
	switch d.Kind {
	case flow.Constant:
		s.constant(d, x)
		return
	case flow.Copied, flow.Computed:
	default:
		s.others = true
		return
	}
	step := s.trace.Step(d.At)
	if step.Inst == nil {
		s.others = true
		return
	}
	var sources []wanted
	for _, from := range d.From {
		if y := s.source(x, d, from); y.matters() {
			sources = append(sources, y)
		}
	}
	if len(sources) == 0 && len(d.From) > 0 { // "or" with all bits, for example
		s.constant(d, x)
		return
	}
	s.brokenAt(d)
	s.noteChanged(d)
	s.near = append(s.near, sources...)
	switch {
	case strings.HasPrefix(step.Inst.Op, "cmov"):
		for _, place := range transfer.Condition(step.Inst) {
			s.near = append(s.near, wanted{l: s.located(d.At, place), n: d.At})
		}
	case d.Kind == flow.Computed && len(s.operands(d)) <= 1 && increments(step.Inst) && s.program.Own(step.PC):
		s.control(d.At)
	}
	s.addresses(d.At)
}

// rest adds the bytes of which the definition was not.
func (s *slice) rest(x wanted, part flow.Location) {
	for _, l := range others(x.l, part) {
		s.near = append(s.near, x.part(l))
	}
}

// others are the bytes of l that are not in a part of it.
func others(l, part flow.Location) (list []flow.Location) {
	first := distance(l, part)
	for _, r := range [][2]int{{0, first}, {first + part.Size, l.Size}} {
		if r[0] < r[1] {
			other := l
			if l.Space == transfer.Memory {
				other.Addr += evidence.Addr(r[0])
			} else {
				other.Off += r[0]
			}
			other.Size = r[1] - r[0]
			list = append(list, other)
		}
	}
	return list
}

// constant is for a value that an instruction has in itself: the branch that led there decided.
func (s *slice) constant(d flow.Definition, x wanted) {
	step := s.trace.Step(d.At)
	if step.Library || step.Inst == nil || !s.program.Own(step.PC) {
		s.others = true
		return
	}
	if x.l.Space == transfer.General && x.l.Off > 0 {
		return // it extends the value of the lower bytes
	}
	s.brokenAt(d)
	kept := s.frames.spared(d.At, x.n, writer(step.Inst, d.Part))
	for _, at := range kept {
		s.branch(at)
	}
	switch at, known := s.frames.decider(d.At); {
	case at != none:
		s.branch(at)
	case !known && !s.whole, len(kept) > 0:
		s.others = true
	default:
		s.constants = append(s.constants, d.At)
	}
	if x.l.Space == transfer.Memory {
		s.addresses(d.At)
	}
}

// writer tells instructions that write to the same register as one did, or to memory that the code names in the same way.
func writer(inst *x86.Inst, part flow.Location) func(*x86.Inst) bool {
	if part.Space == transfer.General {
		return func(other *x86.Inst) bool { return other.Flow == x86.FlowNext && other.Writes(x86.Reg(part.Num)) }
	}
	stored := func(i *x86.Inst) *x86.Memory {
		for k := range i.Operands {
			if o := &i.Operands[k]; o.IsMemory && o.Access.Writes() && !o.Implicit {
				return &o.Memory
			}
		}
		return nil
	}
	m := stored(inst)
	return func(other *x86.Inst) bool {
		o := stored(other)
		return o != nil && m != nil && o.Base == m.Base && o.Index == m.Index && (o.Disp == m.Disp || m.Base == x86.RIP) && o.Target == m.Target
	}
}

// addresses adds what the addresses were made of that a step accessed.
func (s *slice) addresses(n int) {
	step := s.trace.Step(n)
	for k := range step.Inst.Operands {
		o := &step.Inst.Operands[k]
		if !accessesMemory(o) {
			continue
		}
		for _, r := range []x86.Reg{o.Memory.Base, o.Memory.Index} {
			if r.General() && r != x86.RSP {
				s.far = append(s.far, wanted{l: flow.Register(step.Thread, r, 8), n: n})
			}
		}
	}
}

// unsetAt notes a read of memory that has no value. Of bytes of which only some bits matter it is not known.
func (s *slice) unsetAt(x wanted, d flow.Definition) bool {
	if x.l.Space != transfer.Memory {
		return false
	}
	own := s.program.Own(s.trace.Step(x.n).PC)
	s.way = &Way{Call: d.Call}
	switch {
	case d.Kind == flow.Allocated || d.Kind == flow.Freed:
		s.way.Object = s.trace.ObjectAt(d.Part.Addr, d.At+1)
		s.unsetBy(d, x.n)
	case own && s.unset(d, x.n):
	default:
		return false
	}
	if s.others = true; own && !x.masked {
		s.out.Broken = append(s.out.Broken, s.way)
	}
	return true
}

// brokenAt notes the accesses by which a definition was made, if they break a rule.
func (s *slice) brokenAt(d flow.Definition) {
	inst := s.trace.Step(d.At).Inst
	for k := range inst.Operands {
		o := &inst.Operands[k]
		if !accessesMemory(o) {
			continue
		}
		if s.way = (&Way{}); s.access(d.At, k) {
			s.out.Broken = append(s.out.Broken, s.way)
		}
	}
	if s.way = (&Way{}); s.overfilled(d) {
		s.out.Broken = append(s.out.Broken, s.way)
	}
}

// decides reports whether a constant may have decided anything: that the program ends with a status which its call of exit has in itself
// says nothing.
func (s *slice) decides(n int) bool {
	o := s.trace.Step(n).Inst.Operands
	return len(s.decided) > 0 || len(o) > 0 && o[0].IsMemory
}

// straight reports whether the program's own code did not branch between a step and the first of the branches that decided: with a branch,
// another way might have stored something else.
func (s *slice) straight(n int) bool {
	first := s.start
	for at := range s.decided {
		if at > n {
			first = min(first, at)
		}
	}
	for k := n + 1; k < first; k++ {
		if step := s.trace.Step(k); step.Inst != nil && step.Inst.Flow == x86.FlowBranch && s.program.Own(step.PC) {
			return false
		}
	}
	return true
}

// setBy is the way that ends at a constant.
func (s *slice) setBy(n int) *Way {
	s.way = &Way{}
	if step := s.trace.Step(n); len(step.Inst.Operands) > 0 && step.Inst.Operands[0].IsMemory {
		if addr, known := s.trace.Address(n, 0); known {
			s.link(Stored, n, flow.Memory(addr, min(8, step.Inst.Operands[0].Size)))
		}
	}
	s.end(Constant, n)
	return s.way
}

// wholeOps begin the names of more instructions whose results depend on all bits of their operands.
var wholeOps = []string{"set", "cmov", "padd", "psub", "vpadd", "vpsub", "addss", "addsd", "subss", "subsd", "mulss", "mulsd", "cvt"}

// masks reports whether an instruction's result may depend on some bits of its operands only.
func masks(inst *x86.Inst) bool {
	switch inst.Op {
	case "add", "sub", "inc", "dec", "neg", "lea", "imul", "mul", "cmp", "movzx", "movsx", "movsxd", "cdqe", "cdq", "cqo":
		return false
	case "test", "or", "and":
		o := inst.Operands
		return len(o) < 2 || o[0].IsMemory || o[1].IsMemory || o[1].IsImm || o[0].Reg != o[1].Reg
	}
	return !slices.ContainsFunc(wholeOps, func(prefix string) bool { return strings.HasPrefix(inst.Op, prefix) })
}
