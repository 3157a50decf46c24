package transfer

import (
	"strings"

	"diagnose/image/x86"
)

// registers handles the instructions on general registers that move bytes, or whose results do not depend
// on all sources.
func (b *builder) registers() bool {
	op := b.inst.Op
	switch op {
	case "mov", "movnti":
		return b.move(0, 1)
	case "movzx":
		return b.extend(false)
	case "kmovb", "kmovw", "kmovd", "kmovq":
		return b.moveMask(1 << strings.IndexByte("bwdq", op[4]))
	case "movsx", "movsxd":
		return b.extend(true)
	case "cbw", "cwde", "cdqe":
		a := general(x86.RAX, 0, max(b.places[0].Size, 2)) // the operand of cbw is al
		b.add(Transfer{To: a.part(a.Size/2, a.Size/2), From: []Place{a.part(0, a.Size/2)}})
		b.clear(b.rest(0, a.Size))
		return true
	case "lea":
		return b.address()
	case "xor", "sub":
		return b.zeroing()
	case "xchg":
		b.duplicate(0, 1)
		b.duplicate(1, 0)
		return true
	case "xadd":
		b.result(0, b.sources)
		b.duplicate(1, 0)
		return true
	case "bswap", "movbe":
		return b.reverse()
	case "push", "call", "pushf", "pushfd", "pushfq":
		return b.push()
	case "pop", "ret", "leave", "popf", "popfd", "popfq":
		return b.pop()
	}
	if len(op) == 5 && b.inst.Operands != nil && b.operand(0).Reg != x86.RegVector {
		switch op[:4] {
		case "movs", "stos", "lods":
			return b.text()
		}
	}
	return false
}

// move copies operand from to operand to, as many bytes as both have.
func (b *builder) move(to, from int) bool {
	if b.operand(to).Conditional {
		return false
	}
	p, ok := place(b.inst, to)
	if !ok {
		return true // a segment or control register
	}
	source, ok := place(b.inst, from)
	if !ok {
		b.clear(p, b.rest(to, p.Size))
		return true
	}
	size := min(p.Size, source.Size)
	b.copy(p.part(0, size), source.part(0, size))
	b.clear(p.part(size, p.Size-size), b.rest(to, p.Size))
	return true
}

// moveMask moves the low bytes of a mask register from or to another place, and clears the rest of a register.
func (b *builder) moveMask(size int) bool {
	to, from := b.places[0], b.places[1]
	b.copy(to.part(0, size), from.part(0, size))
	if to.Space != Memory {
		b.clear(to.part(size, 8-size))
	}
	return true
}

// duplicate makes an operand a copy of another, and clears the rest of its register.
func (b *builder) duplicate(to, from int) {
	b.copy(b.places[to], b.places[from])
	b.clear(b.rest(to, b.places[to].Size))
}

// extend handles the moves that fill the rest with zeros or the sign.
func (b *builder) extend(sign bool) bool {
	to, from := b.places[0], b.places[1]
	size := min(to.Size, from.Size)
	b.copy(to.part(0, size), from.part(0, size))
	if rest := to.part(size, to.Size-size); sign && rest.Size > 0 {
		b.add(Transfer{To: rest, From: []Place{from}})
	} else {
		b.clear(rest)
	}
	b.clear(b.rest(0, to.Size))
	return true
}

// address handles lea: its result is made of the registers of the operand.
func (b *builder) address() bool {
	m, to := &b.operand(1).Memory, b.places[0]
	size := to.Size
	if m.Addr32 {
		size = min(size, 4)
	}
	var from []Place
	for _, r := range []x86.Reg{m.Base, m.Index} {
		if r.General() {
			from = append(from, general(r, 0, size))
		}
	}
	b.add(Transfer{To: to.part(0, size), From: from, Copy: len(from) == 1 && m.Disp == 0 && (m.Base.General() || m.Scale == 1)})
	b.clear(to.part(size, to.Size-size), b.rest(0, to.Size))
	return true
}

// zeroing handles xor and sub of a register with itself.
func (b *builder) zeroing() bool {
	if len(b.places) < 2 || b.operand(0).Access.Reads() || !b.places[0].isRegister() {
		return false
	}
	b.constant = true
	b.clear(b.places[0], b.rest(0, b.places[0].Size))
	return true
}

func (p Place) isRegister() bool { return p.Space != Memory && p.Size > 0 }

func (b *builder) reverse() bool {
	if b.places[0].Size == 2 && b.inst.Op == "bswap" {
		return false // undefined
	}
	to, from := b.places[0], b.places[len(b.places)-1]
	for n := range to.Size {
		b.copy(to.part(n, 1), from.part(to.Size-1-n, 1))
	}
	b.clear(b.rest(0, to.Size))
	return true
}

// stack returns the indices of the stack's slot and of rsp.
func (b *builder) stack() (slot, pointer int) {
	slot, pointer = -1, -1
	for n := range b.inst.Operands {
		switch o := b.operand(n); {
		case o.Implicit && o.IsMemory:
			slot = n
		case o.Implicit && o.Reg == x86.RSP && !o.IsImm:
			pointer = n
		}
	}
	return slot, pointer
}

func (b *builder) push() bool {
	slot, pointer := b.stack()
	if slot < 0 || pointer < 0 {
		return false
	}
	to := b.places[slot]
	switch from, ok := place(b.inst, 0); {
	case strings.HasPrefix(b.inst.Op, "pushf"):
		b.add(Transfer{To: to, From: runs(b.use.read)})
	case b.inst.Op == "push" && ok:
		b.copy(to, from.part(0, to.Size))
	default:
		b.clear(to)
	}
	b.add(Transfer{To: b.places[pointer], From: []Place{b.places[pointer]}})
	return true
}

func (b *builder) pop() bool {
	slot, pointer := b.stack()
	if slot < 0 || pointer < 0 {
		return false
	}
	from := b.places[slot]
	b.sources = []Place{from} // of the flags
	switch b.inst.Op {
	case "leave":
		b.copy(general(x86.RBP, 0, 8), from)
		b.add(Transfer{To: general(x86.RSP, 0, 8), From: []Place{general(x86.RBP, 0, 8)}})
		return true
	case "pop":
		to, ok := place(b.inst, 0)
		if ok {
			b.copy(to, from.part(0, to.Size))
		}
		if ok && to.Space == General && to.Num == uint8(x86.RSP) {
			return true
		}
	}
	b.add(Transfer{To: b.places[pointer], From: []Place{b.places[pointer]}})
	return true
}

// text handles one repetition of the string instructions that move.
func (b *builder) text() bool {
	to, from := b.places[0], b.places[1]
	b.copy(to, from.part(0, to.Size)) // of stos the size is that of the memory
	b.clear(b.rest(0, to.Size))
	for n := 2; n < len(b.places); n++ {
		p := b.places[n]
		if b.operand(n).Access.Writes() {
			from := []Place{p}
			if p.Num != uint8(x86.RCX) {
				from = append(from, flag(Direction, 1))
			}
			b.add(Transfer{To: p, From: from})
			b.clear(b.rest(n, p.Size))
		}
	}
	return true
}
