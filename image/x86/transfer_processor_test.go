package x86_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// TestTransferOnProcessor changes each byte that an instruction may read, and compares the bytes that
// the processor then writes otherwise with those that the table says are made of it. What the table says is a
// copy must be one.
func TestTransferOnProcessor(t *testing.T) {
	part := 8
	if testing.Short() {
		part = 64
	}
	examined, failed := 0, map[string]int{}
	x86.EachExamined(t, part, func(x *x86.Examined) bool {
		if saves[x.Inst.Op] {
			return true
		}
		examined++
		b := &transferTest{x: x, list: transfer.Of(x.Inst), layout: layoutOf(x)}
		b.all()
		for _, text := range b.failures {
			if failed[x.Inst.Op]++; failed[x.Inst.Op] == 1 {
				t.Errorf("%s (% x): %s", x.Inst.Text(), x.Inst.Bytes, text)
			}
		}
		return len(failed) < 100
	})
	t.Logf("%d instructions", examined)
	if examined < 100 {
		t.Errorf("only %d instructions were examined", examined)
	}
}

// saves are the instructions on the whole state, of which the table only has that all depends on all.
var saves = map[string]bool{"fxsave": true, "fxsave64": true, "fxrstor": true, "fxrstor64": true, "xsave": true, "xsave64": true,
	"xsavec": true, "xsavec64": true, "xsaveopt": true, "xsaveopt64": true, "xsaves": true, "xsaves64": true, "xrstor": true, "xrstor64": true,
	"xrstors": true, "xrstors64": true}

// stateLayout has the offsets of the vectors' parts and of the masks in the state; -1: the processor lacks them.
type stateLayout struct{ high, zmmHigh, zmmMore, masks int }

var knownLayout *stateLayout

func layoutOf(x *x86.Examined) *stateLayout {
	if knownLayout == nil {
		find := func(n, off, size int) int { return bytes.Index(x.Start().Vector, x.VectorBytes(n, off, size)) }
		knownLayout = &stateLayout{find(0, 16, 16), find(0, 32, 32), find(16, 0, 64),
			bytes.Index(x.Start().Vector, bytes.Repeat([]byte{0xff}, 8*8))}
	}
	return knownLayout
}

// spot is one byte of storage; of the space Flag, one bit.
type spot struct {
	space transfer.Space
	num   uint8
	off   int
}

type transferTest struct {
	x        *x86.Examined
	list     []transfer.Transfer
	layout   *stateLayout
	start    *x86.Machine
	base     *x86.Machine
	failures []string
}

func (b *transferTest) fail(format string, args ...any) {
	b.failures = append(b.failures, fmt.Sprintf(format, args...))
}

func (b *transferTest) all() {
	b.start = b.x.Start()
	b.base, _ = b.x.Run(b.start)
	if again, ok := b.x.Run(b.start); !ok || len(b.changed(again)) > 0 {
		return
	}
	b.copies()
	for _, s := range b.differences(b.start, b.base) {
		if !b.writes(s) {
			b.fail("%v is written", s)
		}
	}
	for _, s := range b.inputs() {
		b.perturb(s, 0xff)
		if s.space == transfer.General {
			b.perturb(s, 0x01)
		}
	}
}

// perturb changes a byte before the instruction.
func (b *transferTest) perturb(s spot, x byte) {
	m := b.x.Start()
	if s.space == transfer.Flag {
		x = 1
	}
	b.set(m, s, b.get(m, s)^x)
	after, ok := b.x.Run(m)
	if !ok || after.Regs.Rip != b.base.Regs.Rip {
		return // another way: a condition
	}
	for _, out := range b.changed(after) {
		kept := out == s && b.get(after, s) == b.get(m, s) && b.get(b.base, s) == b.get(b.start, s)
		if kept && !b.overwrites(out) || b.depends(out, s) {
			continue
		}
		b.fail("%v is made of %v", out, s)
	}
}

// changed are the bytes that the processor wrote otherwise than at first.
func (b *transferTest) changed(after *x86.Machine) []spot { return b.differences(b.base, after) }

// differences are the bytes that differ between two states.
func (b *transferTest) differences(m, other *x86.Machine) (list []spot) {
	compare := func(s spot) {
		if b.get(m, s) != b.get(other, s) {
			list = append(list, s)
		}
	}
	for r := x86.RAX; r <= x86.R15; r++ {
		for off := range 8 {
			compare(spot{transfer.General, uint8(r), off})
		}
	}
	for off := range transfer.Direction + 1 {
		compare(spot{transfer.Flag, 0, off})
	}
	for n := range uint8(32) {
		for off := range transfer.VectorSize {
			if s := (spot{transfer.Vector, n, off}); !bytes.Equal(m.Vector, other.Vector) && b.byteOf(m, s) != nil {
				compare(s)
			}
		}
	}
	for n := range uint8(8) {
		for off := range 8 {
			compare(spot{transfer.Mask, n, off})
		}
	}
	for off := range m.Data {
		if m.Data[off] != other.Data[off] {
			list = append(list, spot{space: transfer.Memory, off: off})
		}
	}
	return list
}

// writes reports whether the table has the byte among the results.
func (b *transferTest) writes(s spot) bool {
	return slices.ContainsFunc(b.list, func(t transfer.Transfer) bool { return b.within(t.To, s) >= 0 })
}

// overwrites reports whether the byte is a result in any case.
func (b *transferTest) overwrites(s spot) bool {
	return slices.ContainsFunc(b.list, func(t transfer.Transfer) bool { return b.within(t.To, s) >= 0 && !t.Maybe && !t.Undefined })
}

// depends reports whether the table says that out is made of s.
func (b *transferTest) depends(out, s spot) bool {
	for i := range b.list {
		t := &b.list[i]
		at := b.within(t.To, out)
		if at < 0 {
			continue
		}
		if t.Undefined {
			return true
		}
		for _, f := range t.From {
			from := b.within(f, s)
			if from < 0 || t.Copy && from != at || t.Lane > 0 && from/t.Lane != at/t.Lane {
				continue
			}
			return true
		}
	}
	return false
}

// within is the distance of a byte from the start of a place; -1: it is not in it.
func (b *transferTest) within(p transfer.Place, s spot) int {
	off := s.off
	if p.Space == transfer.Memory {
		if s.space != transfer.Memory {
			return -1
		}
		at, ok := b.address(int(p.Num))
		if !ok {
			return 0 // anywhere
		}
		if p.Size == 0 {
			return 0
		}
		off = s.off - at
	} else if p.Space != s.space || p.Num != s.num && p.Space != transfer.Flag {
		return -1
	}
	if off < p.Off || off >= p.Off+p.Size {
		return -1
	}
	return off - p.Off
}

// address is the offset of a memory operand in the data.
func (b *transferTest) address(n int) (int, bool) {
	m := &b.x.Inst.Operands[n].Memory
	at, ok := m.Address(func(r x86.Reg) (uint64, bool) { return *general(&b.start.Regs, r), true })
	switch m.Segment {
	case x86.SegFS:
		at += b.start.Regs.Fs_base
	case x86.SegGS:
		at += b.start.Regs.Gs_base
	}
	if m.Addr32 {
		at = uint64(uint32(at))
	}
	return int(at - x86.DataBase), ok
}

// copies checks that copies are such.
func (b *transferTest) copies() {
	for _, t := range b.list {
		if !t.Copy || t.Maybe {
			continue
		}
		for n := range t.To.Size {
			to, from := b.spotOf(t.To, n), b.spotOf(t.From[0], n)
			if got, want := b.get(b.base, to), b.get(b.start, from); got != want {
				b.fail("%v is %#x, and no copy of %v, %#x", to, got, from, want)
				return
			}
		}
	}
}

func (b *transferTest) spotOf(p transfer.Place, n int) spot {
	s := spot{p.Space, p.Num, p.Off + n}
	if p.Space == transfer.Memory {
		at, _ := b.address(int(p.Num))
		s.num, s.off = 0, at+s.off
	}
	return s
}

// inputs are the bytes that are changed: those of the operands, but not of registers that make addresses.
func (b *transferTest) inputs() (list []spot) {
	addresses := map[x86.Reg]bool{}
	for n := range b.x.Inst.Operands {
		if o := &b.x.Inst.Operands[n]; o.IsMemory && b.x.Inst.Op != "lea" {
			addresses[o.Memory.Base], addresses[o.Memory.Index] = true, true
		}
	}
	for r := x86.RAX; r <= x86.R15; r++ {
		for off := range 8 {
			if !addresses[r] && b.names(r) {
				list = append(list, spot{transfer.General, uint8(r), off})
			}
		}
	}
	for off := range transfer.Direction {
		list = append(list, spot{transfer.Flag, 0, off})
	}
	for n := range b.x.Inst.Operands {
		o := &b.x.Inst.Operands[n]
		switch at, ok := 0, false; {
		case o.IsMemory:
			if at, ok = b.address(n); !ok || o.Access == "" {
				continue
			}
			for off := range max(o.Size, 1) {
				if at+off < len(b.start.Data) && at+off >= 0 {
					list = append(list, spot{space: transfer.Memory, off: at + off})
				}
			}
		case o.Reg == x86.RegVector && o.RegName[0] == 'k' && b.layout.masks >= 0:
			for off := range 8 {
				list = append(list, spot{transfer.Mask, o.RegName[1] - '0', off})
			}
		case o.Reg == x86.RegVector && len(o.RegName) > 3 && o.RegName[1:3] == "mm":
			var num uint8
			fmt.Sscan(o.RegName[3:], &num)
			for off := range transfer.VectorSize {
				if s := (spot{transfer.Vector, num, off}); b.byteOf(b.start, s) != nil {
					list = append(list, s)
				}
			}
		}
	}
	return list
}

// names reports whether a register is an operand, or part of an address that is only computed.
func (b *transferTest) names(r x86.Reg) bool {
	return slices.ContainsFunc(b.x.Inst.Operands, func(o x86.Operand) bool {
		return !o.IsMemory && !o.IsImm && o.Reg == r || b.x.Inst.Op == "lea" && o.IsMemory && (o.Memory.Base == r || o.Memory.Index == r)
	})
}

var flagBits = []uint{0, 2, 4, 6, 7, 11, 10}

func (b *transferTest) get(m *x86.Machine, s spot) byte {
	switch s.space {
	case transfer.General:
		return byte(*general(&m.Regs, x86.Reg(s.num)) >> (8 * s.off))
	case transfer.Flag:
		return byte(m.Regs.Eflags >> flagBits[s.off] & 1)
	}
	if p := b.byteOf(m, s); p != nil {
		return *p
	}
	return 0
}

func (b *transferTest) set(m *x86.Machine, s spot, v byte) {
	switch s.space {
	case transfer.General:
		r := general(&m.Regs, x86.Reg(s.num))
		*r = *r&^(0xff<<(8*s.off)) | uint64(v)<<(8*s.off)
	case transfer.Flag:
		m.Regs.Eflags = m.Regs.Eflags&^(1<<flagBits[s.off]) | uint64(v)<<flagBits[s.off]
	default:
		*b.byteOf(m, s) = v
	}
}

// byteOf is a byte of a vector or mask register or of the data; nil: the processor has no such register.
func (b *transferTest) byteOf(m *x86.Machine, s spot) *byte {
	at, l := 0, b.layout
	switch n := int(s.num); {
	case s.space == transfer.Memory:
		return &m.Data[s.off]
	case s.space == transfer.Mask && l.masks >= 0:
		at = l.masks + 8*n + s.off
	case s.space != transfer.Vector:
		return nil
	case n >= 16:
		at = l.zmmMore + 64*(n-16) + s.off
		if l.zmmMore < 0 {
			return nil
		}
	case s.off < 16:
		at = 160 + 16*n + s.off
	case s.off < 32:
		at = l.high + 16*n + s.off - 16
	default:
		at = l.zmmHigh + 32*n + s.off - 32
		if l.zmmHigh < 0 {
			return nil
		}
	}
	if at >= len(m.Vector) {
		return nil
	}
	return &m.Vector[at]
}

func general(r *unix.PtraceRegs, n x86.Reg) *uint64 {
	return [16]*uint64{&r.Rax, &r.Rdx, &r.Rcx, &r.Rbx, &r.Rsi, &r.Rdi, &r.Rbp, &r.Rsp,
		&r.R8, &r.R9, &r.R10, &r.R11, &r.R12, &r.R13, &r.R14, &r.R15}[n]
}
