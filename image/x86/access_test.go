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

	"diagnose/internal/crashtest"
)

// report gathers what a walk over the encodings found.
type report struct {
	validated map[string]int // by mnemonic
	skipped   map[string]map[string]int
	accesses  int
	failures  map[string][]string
}

func newReport() *report {
	return &report{validated: map[string]int{}, skipped: map[string]map[string]int{}, failures: map[string][]string{}}
}

func (r *report) fail(op, text string) {
	if d, known := vendorsDiffer[op]; known && strings.Contains(text, d.says) && (d.only == "" || strings.Contains(text, d.only)) {
		r.skip("vendors differ", op)
		return
	}
	r.failures[op] = append(r.failures[op], text)
}

// vendorsDiffer are effects that Decode gives as one vendor's processors have them, and that
// others lack. only is part of the instruction's text.
var vendorsDiffer = map[string]struct{ says, only string }{
	"movsxd":    {"the last byte", "(66 "},               // Intel reads two bytes for a register of 16 bits
	"pop":       {"the last byte", "pop fs"},             // Intel may read only the selector
	"fxrstor":   {"the last byte", ""},                   // the last bytes are reserved, and not read
	"fxrstor64": {"the last byte", ""},                   // as fxrstor
	"ptwrite":   {"has no influence", ""},                // it is ignored where it is not enabled
	"clui":      {"without being listed", ""},            // a processor without user interrupts ignores the prefix, and has rdpkru
	"stui":      {"without being listed", ""},            // and wrpkru
	"scasb":     {"has no influence: rax", "repnz scas"}, // flags may be stale between repetitions
	"scasw":     {"has no influence: rax", "repnz scas"},
	"scasd":     {"has no influence: rax", "repnz scas"},
	"scasq":     {"has no influence: rax", "repnz scas"},
}

// mostTries is how often an instruction is examined before a failure counts: a busy virtual machine
// loses a debug exception, or its status, now and then.
const mostTries = 4

// examine examines an instruction, again if something was wrong.
func (r *report) examine(p *processor, code []byte, inst *Inst, err error) {
	for n := 1; ; n++ {
		own := newReport()
		c := check{p: p, r: own, code: code, inst: *inst, err: err}
		c.all()
		if len(own.failures) == 0 || n == mostTries {
			r.merge(own)
			return
		}
	}
}

func (r *report) merge(own *report) {
	for op, n := range own.validated {
		r.validated[op] += n
	}
	for reason, ops := range own.skipped {
		for op := range ops {
			r.skip(reason, op)
		}
	}
	for op, list := range own.failures {
		r.failures[op] = append(r.failures[op], list...)
	}
	r.accesses += own.accesses
}

func (r *report) skip(reason, op string) {
	if r.skipped[reason] == nil {
		r.skipped[reason] = make(map[string]int)
	}
	r.skipped[reason][op]++
}

// TestAccessOnProcessor executes every encoding that the generator makes and
// compares the processor's effects with Decode's result.
func TestAccessOnProcessor(t *testing.T) {
	crashtest.TracesAccesses(t)
	p := newProcessor(t)
	p.prepare()
	r := newReport()
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
		r.examine(p, code, &i, err)
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

// shape distinguishes instructions that could behave differently.
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
	// good counts the runs that ended, written are the registers that changed
	// in any, influence those that made a difference.
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

// dangerous instructions must not run in the child: they enter the kernel.
func (c *check) dangerous() bool {
	switch c.inst.Op {
	case "syscall", "sysenter", "int", "int1", "int3", "vmmcall", "vmcall":
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

// sameButAddress reports whether another encoding differs only in the
// addressing of the memory operand.
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
	base := c.p.runCode(c.code, regs)
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
	base := c.p.runCode(c.code, regs)
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

// invalid checks that the processor also rejects what Decode rejects.
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

// length checks the instruction pointer after the instruction.
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
		c.fail("the processor continued at " + hex(rip) + " instead of " + hex(next))
	}
	return ok
}
