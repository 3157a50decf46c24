package x86

import "golang.org/x/sys/unix"

// memory checks address, kind and size of each memory operand.
func (c *check) memory(regs unix.PtraceRegs) {
	for i := range c.inst.Operands {
		o := &c.inst.Operands[i]
		if !o.IsMemory {
			continue
		}
		addr, ok := address(o, &regs)
		if !ok || addr >= 1<<47-64 || c.overlaps(i, addr, &regs) {
			continue
		}
		c.watch(o, addr, regs)
	}
}

// address is the operand's address.
func address(o *Operand, regs *unix.PtraceRegs) (uint64, bool) {
	m := o.Memory
	if m.Index == RegVector { // all its elements are 0 here
		m.Index, m.Inexact = RegNone, false
	}
	values := generalRegisters(regs)
	addr, ok := m.Address(func(r Reg) (uint64, bool) { return *values[r], true })
	switch m.Segment {
	case SegFS:
		addr += regs.Fs_base
	case SegGS:
		addr += regs.Gs_base
	}
	return addr, ok
}

// overlaps reports whether another memory operand is near.
func (c *check) overlaps(i int, addr uint64, regs *unix.PtraceRegs) bool {
	for j := range c.inst.Operands {
		o := &c.inst.Operands[j]
		if j == i || !o.IsMemory {
			continue
		}
		other, ok := address(o, regs)
		if !ok || other-addr+1024 < 2048 {
			return true
		}
	}
	return false
}

func (c *check) watch(o *Operand, addr uint64, regs unix.PtraceRegs) {
	size := uint64(max(o.Size, 1))
	last := addr + size - 1
	hit, sig := c.p.hits(c.code, regs, watch{addr, true}, watch{addr, false}, watch{last, false}, watch{last, true})
	if sig != unix.SIGTRAP {
		return
	}
	c.r.accesses++
	wantRead, wantWrite := o.Access.Reads(), o.Access.Writes()
	gotWrite, gotAny := hit[0], hit[1]
	if o.Conditional && !gotAny || !gotAny && mayMiss[c.inst.Op] || c.unnamed() {
		return
	}
	if gotAny != (wantRead || wantWrite) || gotWrite != wantWrite {
		c.fail("access to " + hex(addr) + " is " + string(o.Access) + ", the processor " + describe(gotAny, gotWrite))
		return
	}
	if o.Size == 0 || o.Access == "" {
		return
	}
	if (hit[2] != gotAny || hit[3] != gotWrite) && !readsHalf[c.inst.Op] {
		c.fail("the last byte of " + sizeName(o.Size) + "is not accessed")
		return
	}
	hit, sig = c.p.hits(c.code, regs, watch{addr - 1, false}, watch{last + 1, false})
	if sig == unix.SIGTRAP && (hit[0] || hit[1]) {
		c.fail("the access is larger than " + sizeName(o.Size))
	}
}

func describe(anyAccess, write bool) string {
	switch {
	case write:
		return "writes"
	case anyAccess:
		return "reads"
	}
	return "does not access it"
}

var (
	// mayMiss are those whose load a watchpoint need not see.
	mayMiss = map[string]bool{"clflush": true, "clflushopt": true, "clwb": true}
	// readsHalf are those for which the manuals allow the processor to fetch
	// less than the operand (SDM volume 2, UNPCKLPS: "may fetch only the
	// appropriate 64 bits"), or leave a reserved end alone (FXSAVE). AMD processors without
	// AVX-512 do not read the last element of VMOVDDUP, which it does not use.
	readsHalf = map[string]bool{
		"vmovddup": true,
		"unpcklps": true, "unpcklpd": true, "punpcklbw": true, "punpcklwd": true, "punpckldq": true,
		"punpcklqdq": true, "psllw": true, "pslld": true, "psllq": true, "psrlw": true, "psrld": true,
		"psrlq": true, "psraw": true, "psrad": true, "fxsave": true, "fxsave64": true,
	}
)
