package provenance

import (
	"math/bits"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// Narrowing is an instruction that made a size smaller, because the number did not go into the bytes that were kept of it.
type Narrowing struct {
	PC evidence.Addr
	// Whole is the number, Kept what remained of it in Bytes bytes.
	Whole, Kept uint64
	Bytes       int
}

// narrowing follows the size with which an object was allocated, and of which an address is outside.
type narrowing struct {
	*follower
	// The size is scale times the number that is followed, plus added.
	scale, added uint64
}

// narrowedSize is where the size of an object lost bits without which the object would have had the bytes at an address; nil: nowhere, as
// far as the size is followed: through copies, additions, shifts and multiplications with other numbers.
func (f *follower) narrowedSize(o *flow.Object, l flow.Location) *Narrowing {
	if o.Made < 0 || l.Addr < o.Addr {
		return nil
	}
	call := f.trace.Previous(o.Made)
	argument, ok := map[string]x86.Reg{"malloc": x86.RDI, "operator new": x86.RDI, "operator new[]": x86.RDI, "realloc": x86.RSI, "aligned_alloc": x86.RSI}[o.By]
	if call < 0 || !ok {
		return nil
	}
	z := narrowing{follower: f, scale: 1}
	number, n := flow.Register(f.trace.Step(call).Thread, argument, 8), call
	const most = 256
	for range most {
		d := z.lowest(number, n)
		lost := z.lost(d)
		if lost != nil && z.holds(o, l, lost.Whole) {
			return lost
		}
		if d.At < 0 || len(d.From) == 0 {
			return nil
		}
		if number, ok = z.operand(d); !ok {
			return nil
		}
		n = d.At
	}
	return nil
}

// holds reports whether an object would have had the bytes l if a number had been whole.
func (z *narrowing) holds(o *flow.Object, l flow.Location, whole uint64) bool {
	high, size := bits.Mul64(whole, z.scale)
	size, carry := bits.Add64(size, z.added, 0)
	return high == 0 && carry == 0 && uint64(l.Addr-o.Addr)+uint64(l.Size) <= size
}

// lost tells of the bits that a step did not keep; nil: it kept all.
func (z *narrowing) lost(d flow.Definition) *Narrowing {
	switch {
	case d.At < 0 || z.trace.Step(d.At).Inst == nil:
		return nil
	case d.Kind == flow.Copied:
		from := d.From[0]
		if from.Space != transfer.General || from.Off > 0 {
			return nil
		}
		made := z.lowest(flow.Register(from.Thread, x86.Reg(from.Num), 8), d.At) // with more bytes, if one instruction computed these
		if made.Kind == flow.Computed && made.Part.Size > from.Size {
			whole, known := z.value(made.Part, d.At)
			negative := whole>>(8*made.Part.Size-1) != 0
			return z.narrowing(d, whole, known && !negative)
		}
	case d.Kind == flow.Computed:
		whole, known := z.exactly(d)
		return z.narrowing(d, whole, known)
	}
	return nil
}

func (z *narrowing) narrowing(d flow.Definition, whole uint64, known bool) *Narrowing {
	kept := low64(whole, d.Part.Size)
	if !known || kept == whole {
		return nil
	}
	return &Narrowing{PC: z.ownPlace(d.At), Whole: whole, Kept: kept, Bytes: d.Part.Size}
}

// exactly is what an instruction would have computed if its result had all the bits; ok is false for others than multiplications and shifts,
// and those by lea. Sums are not looked at: a size often has a negative number added.
func (z *narrowing) exactly(d flow.Definition) (v uint64, ok bool) {
	inst, from := z.trace.Step(d.At).Inst, values(d)
	if len(from) == 0 {
		return 0, false
	}
	a, known := z.value(from[0], d.At)
	b := a
	if len(from) > 1 && known {
		b, known = z.value(from[1], d.At)
	}
	k, constant := constantOperand(inst)
	if constant {
		b = k
	}
	switch inst.Op {
	case "imul", "mul":
	case "shl", "sal":
		known = known && constant && b < 64
		b = 1 << (b & 63)
	case "lea":
		times, displacement, one := scaled(inst)
		known = known && one && displacement == 0
		b = times
	default:
		return 0, false
	}
	high, low := bits.Mul64(a, b)
	return low, known && high == 0
}

// scaled is what lea computes of one register: that times a number, plus another one; ok is false if it is made of several registers.
func scaled(inst *x86.Inst) (times uint64, displacement int64, ok bool) {
	for i := range inst.Operands {
		if !inst.Operands[i].IsMemory {
			continue
		}
		m := &inst.Operands[i].Memory
		scale := uint64(max(m.Scale, 1))
		switch {
		case m.Index == x86.RegNone:
			return 1, int64(m.Disp), true
		case m.Base == x86.RegNone:
			return scale, int64(m.Disp), true
		}
		return scale + 1, int64(m.Disp), m.Base == m.Index
	}
	return 0, 0, false
}

// constantOperand is the number that an instruction has in itself.
func constantOperand(inst *x86.Inst) (v uint64, ok bool) {
	for i := range inst.Operands {
		if o := &inst.Operands[i]; o.IsImm && !o.Implicit {
			return uint64(o.Imm), true
		}
	}
	return 0, false
}

// operand is the number from which a step made the number that is followed; ok is false if it did something else with it.
func (z *narrowing) operand(d flow.Definition) (l flow.Location, ok bool) {
	inst := z.trace.Step(d.At).Inst
	if d.Kind == flow.Copied {
		return d.From[0], true
	}
	from := z.operands(d)
	if d.Kind != flow.Computed || inst == nil || len(from) != 1 {
		return l, false
	}
	k, is := constantOperand(inst)
	switch inst.Op {
	case "movsx", "movsxd", "movzx", "cdqe", "cwde":
		return from[0], true
	case "add":
		z.added += z.scale * k
		return from[0], is
	case "imul":
		z.scale *= k
		return from[0], is
	case "shl", "sal":
		z.scale <<= k & 63
		return from[0], is
	case "lea":
		times, displacement, one := scaled(inst)
		z.added += z.scale * uint64(displacement)
		z.scale *= times
		return from[0], one
	}
	return l, false
}
