package x86

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"sort"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// report gathers what a walk over the encodings found.
type report struct {
	validated map[string]int // by mnemonic
	skipped   map[string]map[string]int
	accesses  int
	failures  map[string][]string
}

func (r *report) fail(op, text string) {
	r.failures[op] = append(r.failures[op], text)
}

func (r *report) skip(reason, op string) {
	if r.skipped[reason] == nil {
		r.skipped[reason] = make(map[string]int)
	}
	r.skipped[reason][op]++
}

// TestAccessOnProcessor executes every encoding that the generator makes and
// compares what the processor does with what Decode says.
func TestAccessOnProcessor(t *testing.T) {
	p := newProcessor(t)
	p.prepare()
	r := &report{validated: map[string]int{}, skipped: map[string]map[string]int{}, failures: map[string][]string{}}
	tried, generated := 0, 0
	shapes := map[string]int{}
	encodings(func(code []byte) bool {
		generated++
		code = patchRIP(code)
		i, err := Decode(code, codeAt)
		if err != nil {
			if key := invalidShape(code); shapes[key] > 0 {
				return true
			} else {
				shapes[key]++
			}
		} else {
			if i.HasTarget && bytes.IndexByte(i.Bytes, 0x66) == 0 {
				return true // the vendors differ: AMD truncates the target to 16 bits
			}
			key := shape(&i)
			if shapes[key]++; shapes[key] > perShape || testing.Short() && len(shapes)%4 != 0 {
				return true
			}
		}
		tried++
		c := check{p: p, r: r, code: code, inst: i, err: err}
		c.all()
		return len(r.failures) < 200
	})
	r.print(t)
	t.Logf("%d encodings, %d tried, %d mnemonics validated, %d memory accesses watched", generated, tried, len(r.validated), r.accesses)
	if testing.Short() {
		return
	}
	if len(r.validated) < 400 || r.accesses < 1000 {
		t.Errorf("only %d mnemonics and %d accesses were validated", len(r.validated), r.accesses)
	}
}

// perShape limits how many encodings of the same shape are tried.
const perShape = 1

// invalidShape is the part of an encoding that chooses the instruction.
func invalidShape(code []byte) string {
	var l layout
	reason := l.parse(code, codeAt)
	return reason + string([]byte{byte(l.enc), l.opmap, l.opcode, l.pp, l.mod / 3, l.reg})
}

// shape tells instructions apart that could behave differently.
func shape(i *Inst) string {
	if strings.Contains(i.Op, ".0f") {
		return i.Op
	}
	text := prefixNames[i.style.prefix] + i.Op + string(rune('0'+i.style.mask)) + roundingNames[i.style.rounding]
	for n := range i.Operands {
		o := &i.Operands[n]
		kind := 'r'
		switch {
		case o.IsMemory:
			kind = 'm' + rune(o.Memory.Base)<<8 + rune(o.Memory.Segment)<<4
			if o.Memory.Addr32 {
				kind++
			}
		case o.IsImm:
			kind = 'i'
		case o.Implicit:
			kind = 'I' + rune(o.Reg)<<8
		case len(o.RegName) == 2 && o.RegName[1] == 'h':
			kind = 'h'
		case o.Reg == RegVector:
			kind = 'v'
		}
		text += string([]rune{kind, rune(o.Size) + ' '})
	}
	return text
}

func (r *report) print(t *testing.T) {
	for reason, ops := range r.skipped {
		var names []string
		for op := range ops {
			if r.validated[op] == 0 {
				names = append(names, op)
			}
		}
		sort.Strings(names)
		t.Logf("never validated, %s: %v", reason, names)
	}
	for op, list := range r.failures {
		t.Errorf("%s: %d failures, such as: %s", op, len(list), list[0])
	}
}

// patchRIP aims a RIP-relative operand at the middle of the data.
func patchRIP(code []byte) []byte {
	var l layout
	if l.parse(code, codeAt) != "" || !l.hasMem || l.mem.Base != RIP {
		return code
	}
	code = slices.Clone(code)
	disp := int32(dataBase + 0x1440 - codeAt - l.len)
	binary.LittleEndian.PutUint32(code[l.opcodeAt+2:], uint32(disp))
	return code
}

// check compares one instruction.
type check struct {
	p    *processor
	r    *report
	code []byte
	inst Inst
	err  error
	// good counts the runs that came to an end, written are the registers
	// that changed in any, influence those that made a difference.
	good               int
	written, influence regSet
}

// usesGeneral reports whether other registers than vectors and address parts
// take part, so that other values of them are worth a run.
func (c *check) usesGeneral() bool {
	for i := range c.inst.Operands {
		if o := &c.inst.Operands[i]; !o.IsMemory && !o.IsImm && o.Reg.General() {
			return true
		}
	}
	return c.inst.Flow != FlowNext
}

// dangerous instructions would make the child leave: they enter the kernel.
func (c *check) dangerous() bool {
	switch c.inst.Op {
	case "syscall", "sysenter", "int", "int1", "int3", "vmmcall":
		return true
	case "smsw", "sgdt", "sidt", "str", "sldt": // emulated by the kernel: arch/x86/kernel/umip.c
		return true
	}
	return c.inst.Flow == FlowSyscall
}

func (c *check) all() {
	if c.err != nil {
		c.invalid()
		return
	}
	if c.dangerous() {
		c.r.skip("enters or may enter the kernel", c.inst.Op)
		return
	}
	regs := c.p.regs
	if c.p.step(c.code, &regs) == unix.SIGILL {
		c.r.skip("not on this processor", c.inst.Op)
		return
	}
	if c.sameButAddress() {
		c.tryAddress()
		return
	}
	for n := range 3 {
		if n > 0 && !c.usesGeneral() {
			break
		}
		c.try(c.start(n))
	}
	if c.good == 0 {
		c.tryZeros()
	}
	if c.good > 0 {
		c.compareRegisters()
		c.r.validated[c.inst.Op]++
	}
}

// sameButAddress reports whether another encoding differs in nothing but how
// the memory operand is addressed.
func (c *check) sameButAddress() bool {
	var l layout
	return l.parse(c.code, codeAt) == "" && l.hasMem &&
		(l.mem.Base != RBX || l.mem.Segment != SegNone || l.mem.Addr32) && !l.hasVectorIndex()
}

func (l *layout) hasVectorIndex() bool {
	return l.enc != encLegacy && isVSIB(int(l.opmap), int(l.opcode))
}

// tryAddress checks length and memory only.
func (c *check) tryAddress() {
	regs := c.start(0)
	base := c.p.run(c.code, regs)
	if base.signal == unix.SIGTRAP && c.length(&base) {
		c.memory(regs)
	}
}

// start returns one of three starting points with different conditions and
// values, so that every branch is taken and not taken.
func (c *check) start(n int) unix.PtraceRegs {
	regs := c.p.regs
	switch n {
	case 1:
		regs.Eflags |= 0x8d5
		regs.Rax, regs.Rdx, regs.Rcx = 0x123476549988770f, 0x4a4b4c4d00007173, 0x330000007e06
	case 2:
		regs.Eflags |= 0x80
		regs.Rax, regs.Rdx, regs.Rcx = 5, 3, 0
		c.matchComparison(&regs)
	}
	return regs
}

// tryZeros starts over memory of zeros, which is valid where processor state
// or a return address is loaded.
func (c *check) tryZeros() {
	data := c.p.data
	c.p.data = make([]byte, dataSize)
	regs := c.p.regs
	regs.Rax, regs.Rdx, regs.Rcx = dataBase+0x1000, 0, 0
	c.try(regs)
	c.p.data = data
}

// try compares one run from regs.
func (c *check) try(regs unix.PtraceRegs) {
	base := c.p.run(c.code, regs)
	if base.signal != unix.SIGTRAP {
		c.r.skip("faults: "+unix.SignalName(base.signal), c.inst.Op)
		return
	}
	if !c.length(&base) {
		return
	}
	c.good++
	c.memory(regs)
	c.written |= changed(&regs, &base.regs)
	c.influence |= c.influences(regs, &base)
}

// matchComparison makes the comparison of cmpxchg succeed.
func (c *check) matchComparison(regs *unix.PtraceRegs) {
	if !strings.HasPrefix(c.inst.Op, "cmpxchg") {
		return
	}
	o := &c.inst.Operands[0]
	if !o.IsMemory {
		regs.Rax = *generalRegisters(regs)[o.Reg]
		if o.RegName[1] == 'h' {
			regs.Rax >>= 8
		}
		return
	}
	if addr, ok := address(o, regs); ok && addr-dataBase < dataSize-16 {
		half := uint64(max(o.Size/2, 4))
		regs.Rax = binary.LittleEndian.Uint64(c.p.data[addr-dataBase:])
		regs.Rdx = binary.LittleEndian.Uint64(c.p.data[addr-dataBase+half:])
	}
}

// invalid checks that what Decode refuses is refused by the processor too.
func (c *check) invalid() {
	var e *DecodeError
	if !errors.As(c.err, &e) || e.Len < 1 {
		c.r.fail("error", c.err.Error())
	}
	if c.p.executes(c.code) {
		var l layout
		l.parse(c.code, codeAt)
		c.r.fail("unknown "+hexBytes([]byte{l.opmap, l.opcode, l.pp}), c.err.Error())
	}
}

func (c *check) fail(text string) {
	c.r.fail(c.inst.Op, c.inst.Text()+" ("+hexBytes(c.inst.Bytes)+"): "+text)
}

func hexBytes(b []byte) string {
	const digits = "0123456789abcdef"
	out := make([]byte, 0, 3*len(b))
	for _, v := range b {
		out = append(out, digits[v>>4], digits[v&15], ' ')
	}
	return string(bytes.TrimSpace(out))
}

// length checks where the instruction pointer went.
func (c *check) length(s *state) bool {
	next := codeAt + uint64(c.inst.Len)
	rip := s.regs.Rip
	ok := rip == next
	switch c.inst.Flow {
	case FlowBranch:
		ok = ok || rip == c.inst.Target
	case FlowJump, FlowCall:
		ok = !c.inst.HasTarget || rip == c.inst.Target
	case FlowReturn:
		ok = true
	}
	for i := range c.inst.Operands {
		ok = ok || c.inst.Operands[i].Repeated && rip == codeAt
	}
	if !ok {
		c.fail("the processor went on at " + hex(rip) + " instead of " + hex(next))
	}
	return ok
}

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

// address is where the operand lies.
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

// overlaps reports whether another memory operand lies near.
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
	wantRead, wantWrite := reads(o.Access), writes(o.Access)
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

func changed(before, after *unix.PtraceRegs) (set regSet) {
	a, b := generalRegisters(before), generalRegisters(after)
	for r := range a {
		if *a[r] != *b[r] {
			set.add(Reg(r))
		}
	}
	return set
}

// perturbations are exclusive-ored into registers.
var perturbations = []uint64{^uint64(0), 1, 0x0101010101010101, 0x42, 0x8000, 3, 0x1000, 0x80000080, 0x00ff00ff00000000, 0x40}

// influences finds the registers whose value makes a difference.
func (c *check) influences(regs unix.PtraceRegs, base *state) (set regSet) {
	if noisy[c.inst.Op] {
		return readSet(&c.inst)
	}
	again := c.p.run(c.code, regs)
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
		set.add(r)
	}
	return set
}

// perturb changes the registers in which and returns those that had an
// influence; when several were changed at once it looks for each.
func (c *check) perturb(regs unix.PtraceRegs, base *state, which regSet, x uint64) regSet {
	p := regs
	values := generalRegisters(&p)
	for r := range values {
		if which&(1<<r) != 0 {
			*values[r] ^= x
		}
	}
	s := c.p.run(c.code, p)
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

// difference is where two runs from different states differ beyond what the
// states did: registers that were left alone in both runs do not count.
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
			d.regs.add(Reg(r))
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
		if o.IsMemory || o.IsImm || !writes(o.Access) {
			continue
		}
		said.add(o.Reg)
		if !o.Conditional {
			certain.add(o.Reg)
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

// unnamed reports whether only the encoding is known, of which the answer is
// that everything may happen.
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

// mayIgnore are instructions whose sources had no influence on what can be
// seen, mayMiss those whose load a watchpoint need not see.
var (
	mayIgnore = map[string]bool{"lar": true, "lsl": true, "verr": true, "verw": true, "cpuid": true,
		"monitorx": true, "mwaitx": true, "xrstor": true, "xrstor64": true, "xsave": true, "xsave64": true, "xsavec": true, "xsavec64": true,
		"xsaveopt": true, "xsaveopt64": true}
	// noisy are those whose results vary by themselves: time, random numbers,
	// the number of the core.
	noisy = map[string]bool{"rdtsc": true, "rdtscp": true, "rdpru": true, "rdrand": true, "rdseed": true,
		"rdpid": true, "cpuid": true}
	mayMiss = map[string]bool{"clflush": true, "clflushopt": true, "clwb": true}
	// readsHalf are those of which the manuals let the processor fetch less
	// than the operand (SDM volume 2, UNPCKLPS: "may fetch only the
	// appropriate 64 bits"), or leave a reserved end alone (FXSAVE).
	readsHalf = map[string]bool{
		"unpcklps": true, "unpcklpd": true, "punpcklbw": true, "punpcklwd": true, "punpckldq": true,
		"punpcklqdq": true, "psllw": true, "pslld": true, "psllq": true, "psrlw": true, "psrld": true,
		"psrlq": true, "psraw": true, "psrad": true, "fxsave": true, "fxsave64": true,
	}
)

// TestSyscallOnProcessor checks the registers that the processor and the
// kernel change at a system call (System V ABI, A.2.1).
func TestSyscallOnProcessor(t *testing.T) {
	p := newProcessor(t)
	p.prepare()
	regs := p.regs
	regs.Rax = unix.SYS_GETPID
	code := []byte{0x0f, 0x05}
	s := p.run(code, regs)
	i, err := Decode(code, codeAt)
	if err != nil {
		t.Fatal(err)
	}
	var said regSet
	for _, r := range i.Written() {
		said.add(r)
	}
	if got := changed(&regs, &s.regs); got != said || s.regs.Rax != uint64(p.pid) {
		t.Errorf("getpid returned %d and changed %s, want %d and %s", s.regs.Rax, names(got), p.pid, names(said))
	}
}
