package x86

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func changed(before, after *unix.PtraceRegs) (set regSet) {
	a, b := generalRegisters(before), generalRegisters(after)
	for r := range a {
		if *a[r] != *b[r] {
			set.addRegister(Reg(r))
		}
	}
	return set
}

// perturbations are exclusive-ored into registers.
var perturbations = []uint64{^uint64(0), 1, 0x0101010101010101, 0x42, 0x8000, 3, 0x1000, 0x80000080, 0x00ff00ff00000000, 0x40}

// influences finds the registers whose value matters.
func (c *check) influences(regs unix.PtraceRegs, base *state) (set regSet) {
	if noisy[c.inst.Op] {
		return readSet(&c.inst)
	}
	again := c.p.runCode(c.code, regs)
	noise := differences(&regs, &regs, base, &again)
	if noise != (difference{}) {
		c.fail("two runs from the same state differ")
	}
	said := readSet(&c.inst)
	for n, x := range perturbations {
		if n < 3 {
			set |= c.perturb(regs, base, ^said&0xffff, x)
		}
		for r := RAX; r <= R15; r++ {
			if bit := regSet(1) << r; said&bit != 0 && set&bit == 0 {
				set |= c.perturb(regs, base, bit, x)
			}
		}
	}
	return set
}

func readSet(i *Inst) (set regSet) {
	for _, r := range i.Read() {
		set.addRegister(r)
	}
	return set
}

// perturb changes the registers in which, and returns those that had an
// influence; if several were changed at once it tests each.
func (c *check) perturb(regs unix.PtraceRegs, base *state, which regSet, x uint64) regSet {
	p := regs
	values := generalRegisters(&p)
	for r := range values {
		if which&(1<<r) != 0 {
			*values[r] ^= x
		}
	}
	s := c.p.runCode(c.code, p)
	if s.signal == unix.SIGTRAP {
		c.written |= changed(&p, &s.regs)
	}
	if differences(&regs, &p, base, &s) == (difference{}) {
		return 0
	}
	if which&(which-1) == 0 {
		return which
	}
	var set regSet
	for r := RAX; r <= R15; r++ {
		if which&(1<<r) != 0 {
			set |= c.perturb(regs, base, 1<<r, x)
		}
	}
	return set
}

// difference is the difference of two runs' results beyond that of their start
// states: registers that both runs left unchanged do not count.
type difference struct {
	regs  regSet
	other bool
}

func differences(before1, before2 *unix.PtraceRegs, after1, after2 *state) (d difference) {
	if after1.signal != after2.signal {
		d.other = true
		return d
	}
	b1, b2 := generalRegisters(before1), generalRegisters(before2)
	a1, a2 := generalRegisters(&after1.regs), generalRegisters(&after2.regs)
	for r := range a1 {
		untouched := *a1[r] == *b1[r] && *a2[r] == *b2[r]
		if !untouched && *a1[r] != *a2[r] {
			d.regs.addRegister(Reg(r))
		}
	}
	d.other = after1.regs.Rip != after2.regs.Rip || after1.regs.Eflags != after2.regs.Eflags ||
		after1.regs.Fs_base != after2.regs.Fs_base || after1.regs.Gs_base != after2.regs.Gs_base ||
		!bytes.Equal(after1.vector, after2.vector) || !bytes.Equal(after1.data, after2.data)
	return d
}

// compareRegisters checks both directions: nothing that happened may be
// missing from the table, nor should the table claim what does not happen.
func (c *check) compareRegisters() {
	written, influence := c.written, c.influence
	var said, certain regSet
	for i := range c.inst.Operands {
		o := &c.inst.Operands[i]
		if o.IsMemory || o.IsImm || !o.Access.Writes() {
			continue
		}
		said.addRegister(o.Reg)
		if !o.Conditional {
			certain.addRegister(o.Reg)
		}
	}
	if missing := written &^ said; missing != 0 {
		c.fail("written without being listed: " + names(missing))
	}
	if idle := certain &^ written; idle != 0 {
		c.fail("not written: " + names(idle))
	}
	read := readSet(&c.inst)
	if missing := influence &^ read; missing != 0 {
		c.fail("has influence without being listed as read: " + names(missing))
	}
	if idle := read &^ influence &^ (said &^ certain); idle != 0 && !mayIgnore[c.inst.Op] && !c.hint() && !c.unnamed() {
		c.fail("has no influence: " + names(idle))
	}
}

// unnamed reports whether only the encoding is known; then Decode says that
// everything may happen.
func (c *check) unnamed() bool { return strings.Contains(c.inst.Op, ".") }

// hint reports whether the instruction only names an address, or compares a
// register with itself.
func (c *check) hint() bool {
	ops := c.inst.Operands
	if c.inst.Op == "cmp" && ops[0].RegName == ops[1].RegName {
		return true
	}
	return len(ops) == 1 && ops[0].IsMemory && ops[0].Access == ""
}

func names(set regSet) string {
	text := ""
	for _, r := range set.list() {
		text += r.String() + " "
	}
	return text
}

var (
	// mayIgnore are instructions whose sources had no visible influence.
	mayIgnore = map[string]bool{"lar": true, "lsl": true, "verr": true, "verw": true, "cpuid": true,
		"monitorx": true, "mwaitx": true, "xrstor": true, "xrstor64": true, "xsave": true, "xsave64": true, "xsavec": true, "xsavec64": true,
		"xsaveopt": true, "xsaveopt64": true}
	// noisy are those whose results vary by themselves: time, random numbers,
	// the number of the core.
	noisy = map[string]bool{"rdtsc": true, "rdtscp": true, "rdpru": true, "rdrand": true, "rdseed": true,
		"rdpid": true, "cpuid": true}
)

// TestSyscallOnProcessor checks the registers that the processor and the
// kernel change at a system call (System V ABI, A.2.1).
func TestSyscallOnProcessor(t *testing.T) {
	p := newProcessor(t)
	p.prepare()
	regs := p.regs
	regs.Rax = unix.SYS_GETPID
	code := []byte{0x0f, 0x05}
	s := p.runCode(code, regs)
	i, err := Decode(code, codeAt)
	if err != nil {
		t.Fatal(err)
	}
	var said regSet
	for _, r := range i.Written() {
		said.addRegister(r)
	}
	if got := changed(&regs, &s.regs); got != said || s.regs.Rax != uint64(p.pid) {
		t.Errorf("getpid returned %d and changed %s, want %d and %s", s.regs.Rax, names(got), p.pid, names(said))
	}
}
