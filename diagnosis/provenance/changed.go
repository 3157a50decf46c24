package provenance

import (
	"cmp"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// Changed is a number of which an instruction kept too few bytes, or that another one took from these bytes with another sign.
type Changed struct {
	// PC is the instruction.
	PC evidence.Addr
	// Number is the number as it had been made, Became what remained of it in Bytes bytes.
	Number, Became int64
	Bytes          int
	// Extended: the number did go into the bytes, but was taken from them with another sign.
	Extended bool
	// stores: the instruction stores the number.
	stores bool
	// kept are the bytes of a register that were kept of from, the number in it.
	kept flow.Location
	from wide
	// counted is the instruction whose executions are counted.
	counted evidence.Addr
	// Times is in how many of Executions of the instruction that happened. With too many Executions to look at, both are of some.
	Times, Executions int
}

// mostChanged bounds how many places are looked at where a number changed, mostExecutions how often each is.
const (
	mostChanged    = 8
	mostExecutions = 4096
)

// changes finds numbers that changed on their way.
type changes struct{ *follower }

// of is how the number changed that a step took from other storage; nil: it did not, or it is not known.
func (c changes) of(d flow.Definition) *Changed {
	inst := c.trace.Step(d.At).Inst
	switch {
	case !c.program.Own(c.trace.Step(d.At).PC):
		return nil
	case widens(inst):
		return c.extended(d.At)
	case d.Kind == flow.Copied && len(d.From) == 1:
		if x := c.cutAt(d.At); x != nil && !c.shifted(x, d.At) {
			return x
		}
	}
	return nil
}

// widens reports whether an instruction makes the bytes of a number more, by zeros or by its sign.
func widens(inst *x86.Inst) bool {
	return (inst.Op == "movzx" || inst.Op == "movsx" || inst.Op == "movsxd") && len(inst.Operands) >= 2
}

// cut is how the number in a register changed of which a step kept the lowest bytes: the number goes into them neither with a sign nor
// without.
func (c changes) cut(kept flow.Location, n int) *Changed {
	number, ok := c.made(kept, n)
	if !ok || number.fits(kept.Size) {
		return nil
	}
	pc, to := c.trace.Step(n).PC, c.trace.Step(n).Inst.Operands
	return &Changed{PC: pc, counted: pc, stores: len(to) > 0 && to[0].IsMemory, kept: kept, from: number, Number: number.signed(), Became: int64(low64(number.bits, kept.Size)), Bytes: kept.Size}
}

// shifted reports whether the other bytes of the whole number in a register are taken from it as well, near step n: code that stores a
// number byte by byte shifts it.
func (c changes) shifted(x *Changed, n int) bool {
	const near = 2000
	made := c.origin(x.kept, n)
	first, last := n, n
	for range near {
		if p := c.trace.Previous(first); p >= 0 {
			first = p
		}
		if next := c.trace.Next(last); next >= 0 {
			last = next
		}
	}
	for k := first; k >= 0 && k <= last; k = c.trace.Next(k) {
		inst := c.trace.Step(k).Inst
		if inst == nil {
			continue
		}
		for i := range inst.Operands {
			o := &inst.Operands[i]
			takes := o.Size == 1 && strings.HasSuffix(o.RegName, "h") || i == 0 && slices.Contains(shifts, inst.Op)
			if !takes || o.IsMemory || o.IsImm || !o.Reg.General() || low64(c.trace.Register(k, o.Reg), x.from.size) != x.from.bits {
				continue
			}
			if l := flow.Register(x.kept.Thread, o.Reg, x.kept.Size); c.origin(l, k) == made {
				return true
			}
		}
	}
	return false
}

// shifts are the operations that take other bytes of a number than the lowest.
var shifts = []string{"shr", "sar", "rol", "ror", "bswap"}

// origin is the step that made a number, which others copied.
func (c changes) origin(l flow.Location, n int) (at int) {
	const most = 16
	for range most {
		d := c.lowest(l, n)
		if at = d.At; at < 0 || d.Kind != flow.Copied {
			break
		}
		l, n = d.From[0], at
	}
	return at
}

// extended is how the number changed that a step took from fewer bytes, and that had been kept in these as another number.
func (c changes) extended(n int) *Changed {
	at, inst, next := n, c.trace.Step(n).Inst, c.trace.Next(n)
	if next < 0 || inst.Operands[0].IsMemory {
		return nil
	}
	from, known := c.source(n, &inst.Operands[1])
	if !known {
		return nil
	}
	size := from.Size
	became := int64(low64(c.trace.Register(next, inst.Operands[0].Reg), max(inst.Operands[0].Size, 4)))
	if inst.Op != "movzx" {
		became = signed(uint64(became), max(inst.Operands[0].Size, 4))
	}
	const most = 64
	for range most {
		if from.Space == transfer.General {
			if number, ok := c.made(from, n); ok {
				fits := number.fits(size)
				if number.is(became) || !fits && n != at { // what another step cut is told of that
					return nil
				}
				pc := c.trace.Step(at).PC
				return &Changed{PC: pc, counted: pc, Number: number.signed(), Became: became, Bytes: size, Extended: fits}
			}
		}
		d := c.define(from, n)
		switch {
		case d.At < 0 || d.Part != from:
			return nil
		case d.Kind == flow.Computed:
			return c.added(d, became, at)
		case d.Kind != flow.Copied:
			return nil
		}
		from, n = d.From[0], d.At
	}
	return nil
}

// added is how the number changed to which an instruction added a constant in its own bytes, if step n then took it as another one.
func (c changes) added(d flow.Definition, became int64, n int) *Changed {
	step := c.trace.Step(d.At)
	if step.Inst == nil || !c.program.Own(step.PC) || d.Part.Size >= 8 {
		return nil
	}
	k, constant := constantOperand(step.Inst)
	switch step.Inst.Op {
	case "add":
	case "sub":
		k = -k
	case "inc":
		k, constant = 1, true
	case "dec":
		k, constant = ^uint64(0), true
	default:
		constant = false
	}
	before := int64(low64(uint64(became)-k, d.Part.Size))
	if c.trace.Step(n).Inst.Op != "movzx" {
		before = signed(uint64(before), d.Part.Size)
	}
	number := before + int64(k)
	if !constant || number == became {
		return nil
	}
	return &Changed{PC: step.PC, Number: number, Became: became, Bytes: d.Part.Size, counted: c.trace.Step(n).PC, stores: d.Part.Space == transfer.Memory}
}

// source is the storage of an operand that is read at step n.
func (c changes) source(n int, o *x86.Operand) (l flow.Location, known bool) {
	if !o.IsMemory {
		return flow.Register(c.trace.Step(n).Thread, o.Reg, o.Size), o.Reg.General()
	}
	for k := range c.trace.Step(n).Inst.Operands {
		if x := &c.trace.Step(n).Inst.Operands[k]; x.IsMemory {
			addr, known := c.trace.Address(n, k)
			return flow.Memory(addr, o.Size), known
		}
	}
	return l, false
}

// wide is a number in size bytes, which may have a sign.
type wide struct {
	bits uint64
	size int
}

func (w wide) signed() int64 { return signed(w.bits, w.size) }

// is reports whether it is a number, with a sign or without.
func (w wide) is(v int64) bool { return w.signed() == v || w.size < 8 && int64(w.bits) == v }

// fits reports whether it goes into some bytes, with a sign or without.
func (w wide) fits(size int) bool {
	return low64(w.bits, size) == w.bits || signed(w.bits, size) == w.signed()
}

func signed(bits uint64, size int) int64 {
	unused := 64 - 8*size
	return int64(bits<<unused) >> unused
}

// made is the number in a register of which bytes are the lowest, if the program's code computed it with more bytes than these.
func (c changes) made(l flow.Location, n int) (number wide, ok bool) {
	if l.Space != transfer.General || l.Off > 0 || l.Size >= 8 || c.trace.Step(n).Thread != l.Thread {
		return number, false
	}
	d := c.lowest(flow.Register(l.Thread, x86.Reg(l.Num), 8), n)
	if d.At < 0 || d.Part.Size <= l.Size || !c.isNumber(d) {
		return number, false
	}
	return wide{low64(c.trace.Register(n, x86.Reg(l.Num)), d.Part.Size), d.Part.Size}, true
}

// arithmetic are the operations whose result is one number. Others put several into one word.
var arithmetic = []string{"add", "adc", "sub", "sbb", "inc", "dec", "neg", "lea", "imul", "mul", "div", "idiv", "movzx", "movsx", "movsxd", "cdqe", "cwde"}

// isNumber reports whether all bytes of a definition are one number, as far as is known: no instruction put several into one word, and none
// loaded several stores.
func (c changes) isNumber(d flow.Definition) bool {
	const most = 16
	for range most {
		switch {
		case d.At < 0 || c.trace.Step(d.At).Inst == nil:
			return true
		case d.Kind == flow.Computed:
			return slices.Contains(arithmetic, c.trace.Step(d.At).Inst.Op)
		case d.Kind != flow.Copied:
			return true
		}
		from := d.From[0]
		if d = c.define(from, d.At); d.Part != from {
			return false
		}
	}
	return true
}

// count counts in how many executions of the instructions the numbers changed.
func (c changes) count(list []Changed) {
	at := map[evidence.Addr]*Changed{}
	for i := range list {
		at[list[i].counted] = &list[i]
	}
	for n := range c.trace.Len() {
		x := at[c.trace.Step(n).PC]
		if x == nil || c.trace.Step(n).Inst == nil || x.Executions == mostExecutions {
			continue
		}
		x.Executions++
		var y *Changed
		if widens(c.trace.Step(n).Inst) {
			y = c.extended(n)
		} else {
			y = c.cutAt(n)
		}
		if y != nil && y.PC == x.PC {
			x.Times++
		}
	}
}

// cutAt is as cut, of the register that a step reads.
func (c changes) cutAt(n int) *Changed {
	for k := range c.trace.Step(n).Inst.Operands {
		o := &c.trace.Step(n).Inst.Operands[k]
		if !o.IsMemory && !o.IsImm && o.Access.Reads() && !o.Access.Writes() && o.Reg.General() {
			return c.cut(flow.Register(c.trace.Step(n).Thread, o.Reg, o.Size), n)
		}
	}
	return nil
}

// rare reports whether the number changed in few of the executions of the instruction. A hash, or text that is taken apart, loses bits
// each time, and is meant to.
func (x *Changed) rare() bool {
	const few, one = 8, 16 // one time in sixteen, or once in a few
	return x.Times <= 1 && x.Executions <= few || x.Times*one <= x.Executions
}

// doubt orders changes: code seldom means to store a part of a number, more often to read bytes with a sign, and often to take a part.
func (x *Changed) doubt() int {
	switch {
	case x.stores:
		return 0
	case x.Extended:
		return 1
	}
	return 2
}

// noteChanged notes that a number changed that decided.
func (s *slice) noteChanged(d flow.Definition) {
	if len(s.out.Changed) == mostChanged {
		return
	}
	x := changes{s.follower}.of(d)
	if x == nil {
		return
	}
	for i := range s.out.Changed {
		if s.out.Changed[i].PC == x.PC {
			return
		}
	}
	s.out.Changed = append(s.out.Changed, *x)
}

// keepRare leaves the numbers out that change often, and puts those first that did not go into their bytes.
func (s *slice) keepRare() {
	if len(s.out.Changed) == 0 {
		return
	}
	changes{s.follower}.count(s.out.Changed)
	s.out.Changed = slices.DeleteFunc(s.out.Changed, func(x Changed) bool { return !x.rare() })
	slices.SortStableFunc(s.out.Changed, func(a, b Changed) int { return cmp.Compare(a.doubt(), b.doubt()) })
}
