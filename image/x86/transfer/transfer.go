package transfer

import (
	"slices"
	"strings"

	"diagnose/image/x86"
)

// Of returns what an instruction does to registers, flags and memory, in no order. The instruction
// pointer is left out, and so are what a called function and the kernel do. A repeated string
// instruction is taken as one repetition.
func Of(inst *x86.Inst) []Transfer {
	b := &builder{inst: inst, use: useOf(inst), vex: strings.HasPrefix(inst.Op, "v") || strings.HasPrefix(inst.Op, "evex") || strings.HasPrefix(inst.Op, "xop")}
	for n := range inst.Operands {
		o := &inst.Operands[n]
		p, ok := place(inst, n)
		b.places = append(b.places, p)
		b.float = b.float || p.Space == Float && ok
		if ok && o.Access.Reads() {
			b.sources = append(b.sources, p)
		}
	}
	b.sources = append(b.sources, runs(b.use.read)...)
	switch {
	case b.state(), b.registers(), b.vectors():
	default:
		b.compute()
	}
	b.flags()
	return b.list
}

// builder collects the transfers of an instruction.
type builder struct {
	inst *x86.Inst
	use  flagUse
	// vex: a write of a vector register clears the rest of it.
	vex bool
	// places are the operands'; sources is all that is read.
	places, sources []Place
	float           bool // the x87's registers take part
	list            []Transfer
	// constant: the result does not depend on the registers that the instruction names.
	constant bool
}

func (b *builder) add(t Transfer) { b.list = append(b.list, t) }

// copy makes To a copy of From, which has the same size.
func (b *builder) copy(to, from Place) {
	if to.Size > 0 {
		b.add(Transfer{To: to, From: []Place{from}, Copy: true})
	}
}

// clear makes the places constant.
func (b *builder) clear(places ...Place) {
	for _, p := range places {
		if p.Size > 0 {
			b.add(Transfer{To: p})
		}
	}
}

func (b *builder) operand(n int) *x86.Operand { return &b.inst.Operands[n] }

// rest is what a write of the first size bytes of operand n clears of its register (SDM volume 1,
// 3.4.1.1; volume 2, 2.3.10).
func (b *builder) rest(n, size int) Place {
	p := b.places[n]
	switch {
	case p.Space == General && size >= 4 && p.Off == 0:
		return p.part(size, 8-size)
	case p.Space == Vector && b.vex:
		return p.part(size, VectorSize-size)
	case p.Space == Mask:
		return p.part(size, 8-size)
	}
	return Place{}
}

// compute is the rule for all instructions without one of their own: each result is made of all sources.
func (b *builder) compute() {
	for n := range b.inst.Operands {
		o := b.operand(n)
		if _, ok := place(b.inst, n); !ok || !o.Access.Writes() || b.places[n].Space == Float {
			continue
		}
		b.result(n, b.sources)
		if p := b.places[n]; p.Space == Mask && strings.HasPrefix(b.inst.Op, "vp2intersect") { // SDM: it writes a pair of masks, with an even number and the next
			b.add(Transfer{To: Place{Mask, p.Num ^ 1, 0, 8}, From: b.sources})
		}
	}
	if strings.HasSuffix(b.inst.Op, "strm") { // the mask is in xmm0
		b.add(Transfer{To: Place{Vector, 0, 0, 16}, From: b.sources})
		if b.vex {
			b.clear(Place{Vector, 0, 16, VectorSize - 16})
		}
	}
	if b.float || isFloat(b.inst.Op) {
		b.add(Transfer{To: stack87, From: append(slices.Clone(b.sources), stack87)})
	}
}

// result makes operand n of the sources, and clears the rest of its register.
func (b *builder) result(n int, from []Place) {
	p, o := b.places[n], b.operand(n)
	t := Transfer{To: p, From: from, Maybe: o.Conditional}
	if o.Conditional && !slices.Contains(from, p) {
		t.From = append(slices.Clone(from), p)
	}
	if isFloat(b.inst.Op) {
		t.From = append(slices.Clone(t.From), stack87)
	}
	b.add(t)
	switch rest := b.rest(n, p.Size); {
	case rest.Size > 0 && o.Conditional && !strings.HasPrefix(b.inst.Op, "cmov"):
		b.add(Transfer{To: rest, From: []Place{rest}, Maybe: true})
	default:
		b.clear(rest)
	}
}

// isFloat reports whether an instruction is the x87's.
func isFloat(op string) bool {
	return op[0] == 'f' && !strings.HasPrefix(op, "fx") && op != "femms" || op == "fxch" || op == "fxam" || op == "fxtract"
}

// flags adds what the instruction does to the flags.
func (b *builder) flags() {
	from := b.sources
	if b.constant {
		from = nil
	}
	if isFloat(b.inst.Op) {
		from = append(slices.Clone(from), stack87)
	}
	kept := b.use.kept && b.mayKeep()
	for _, p := range runs(b.use.written) {
		t := Transfer{To: p, From: from, Maybe: kept}
		if kept {
			t.From = append(slices.Clone(from), p)
		}
		b.add(t)
	}
	for _, p := range runs(b.use.undefined) {
		b.add(Transfer{To: p, From: append(slices.Clone(from), p), Undefined: true})
	}
}

// mayKeep reports whether a count, of a shift or of repetitions, may be 0.
func (b *builder) mayKeep() bool {
	for n := range b.inst.Operands {
		if o := b.operand(n); o.IsImm && !o.Implicit {
			return o.Imm&0x3f == 0 || o.Size == 0
		}
	}
	return true
}

// state handles the instructions that save and load the state of the vectors.
func (b *builder) state() bool {
	if len(b.places) == 0 {
		return false
	}
	memory := b.places[0]
	switch strings.TrimSuffix(b.inst.Op, "64") {
	case "fxsave", "xsave", "xsavec", "xsaveopt", "xsaves":
		b.add(Transfer{To: memory, From: slices.Concat(b.sources, stateRegisters), Maybe: true})
	case "fxrstor", "xrstor", "xrstors":
		for _, p := range stateRegisters {
			b.add(Transfer{To: p, From: slices.Concat(b.sources, []Place{memory, p}), Maybe: true})
		}
	default:
		return false
	}
	return true
}

// stateRegisters are the registers of that state.
var stateRegisters = func() []Place {
	list := []Place{stack87}
	for n := range uint8(32) {
		list = append(list, Place{Vector, n, 0, VectorSize})
	}
	for n := range uint8(8) {
		list = append(list, Place{Mask, n, 0, 8})
	}
	return list
}()
