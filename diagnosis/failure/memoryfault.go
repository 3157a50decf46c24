package failure

import (
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/internal/siginfo"
)

const (
	pageSize = 4096
	// nearNull is the lowest address that Linux maps by default (vm.mmap_min_addr). An address
	// below it was computed from null.
	nearNull = 64 << 10
	// farAway is how far from every mapping an address must be to count as
	// one that never was an address of this process.
	farAway = 4 << 30
	// textGap is the same distance for addresses that spell text. One in fifty valid addresses does
	// so by chance.
	textGap = 64 << 20
)

// culprit is the operand whose access the processor refused.
type culprit struct {
	op   *x86.Operand
	addr evidence.Addr
}

// segmentation judges SIGSEGV that the kernel raised.
func (j *judge) segmentation(f *evidence.Failure) {
	if f.Signal.Code == siginfo.Kernel || !f.Signal.HasAddr {
		j.protectionFault(f)
		return
	}
	addr := f.Signal.Addr
	fault := &evidence.Fault{Addr: addr, Place: j.process.Place(addr), Proof: evidence.FromCore}
	f.Fault = fault
	if j.cpu.fetched(addr) {
		j.executed(f)
		return
	}
	c := j.cpu.culpritFor(addr)
	if c.op != nil {
		fault.Access, fault.Size = c.op.Access, c.op.Size
	}
	if j.stackOverflow(f) {
		return
	}
	f.Kind = j.memoryKind(f, c)
	if j.cpu.inst == nil {
		j.limits.limit("", fmt.Sprintf("the instruction at %v cannot be read, so whether it read or wrote is not known", j.cpu.pc()))
	}
}

// fetched reports whether the processor faulted on fetching the instruction:
// one that starts at addr, or that crosses into addr's page.
func (c *processor) fetched(addr evidence.Addr) bool {
	pc := c.pc()
	if pc == addr {
		return true
	}
	return addr > pc && addr-pc < maxInstruction && addr%pageSize == 0 && c.inst == nil
}

// culpritFor finds the memory operand that covers the address of the fault. An operand whose
// address changes while the instruction repeats is taken only if no other fits.
func (c *processor) culpritFor(addr evidence.Addr) culprit {
	if c.inst == nil {
		return culprit{}
	}
	var last culprit
	count := 0
	for i := range c.inst.Operands {
		op := &c.inst.Operands[i]
		if !op.IsMemory || op.Access == "" {
			continue
		}
		ea, ok := c.effective(&op.Memory)
		if ok && addr >= ea && uint64(addr-ea) < uint64(max(op.Size, 1)) {
			return culprit{op, ea}
		}
		last = culprit{op, ea}
		count++
	}
	if count == 1 {
		return last
	}
	return culprit{}
}

func (j *judge) memoryKind(f *evidence.Failure, c culprit) evidence.FailureKind {
	addr := f.Fault.Addr
	switch {
	case addr < nearNull:
		return j.cpu.nullKind(addr, c)
	case !addr.Canonical():
		return evidence.NonCanonical
	case j.cpu.nullArray(c):
		f.Proof = evidence.Inferred
		return evidence.NullPointer
	}
	m := j.process.MappingAt(addr)
	if m == nil || f.Signal.Code == segvMapErr {
		return j.unmappedKind(f, addr)
	}
	return j.permissionKind(f, m)
}

// nullKind distinguishes a null pointer, with the offset of a member or an element added to it,
// from a small number that is used as an address.
func (c *processor) nullKind(addr evidence.Addr, at culprit) evidence.FailureKind {
	switch {
	case addr == 0:
		return evidence.NullPointer
	case at.op == nil:
		return evidence.NearNullPointer
	case at.op.Memory.Absolute && addr < pageSize:
		return evidence.NullPointer
	}
	if base, ok := c.register(at.op.Memory.Base); ok && base == 0 {
		return evidence.NullPointer
	}
	return evidence.NearNullPointer
}

// nullArray recognises a null pointer that was indexed far beyond the first
// page: the base register is zero and the index scaled.
func (c *processor) nullArray(at culprit) bool {
	if at.op == nil || at.op.Memory.Scale < 2 || at.op.Memory.Index == x86.RegNone {
		return false
	}
	base, ok := c.register(at.op.Memory.Base)
	return ok && base == 0
}

func (j *judge) unmappedKind(f *evidence.Failure, addr evidence.Addr) evidence.FailureKind {
	gap := j.process.distance(addr)
	wild := textIn(uint64(addr)) != "" && gap > textGap || int64(addr) < 0 || gap > farAway
	if !wild {
		return evidence.UnmappedAddress
	}
	f.Proof = evidence.Inferred
	return evidence.WildPointer
}

func (j *judge) permissionKind(f *evidence.Failure, m *image.Mapping) evidence.FailureKind {
	switch {
	case f.Signal.Code == segvPkuErr:
		f.Message = evidence.Say("a memory protection key forbids the access")
		return evidence.ProtectedPage
	case !m.Readable() && !m.Writable() && !m.Executable():
		if strings.HasPrefix(m.Perms, "?") && f.Fault.Access != evidence.Read {
			f.Proof = evidence.Inferred // it may be read-only
		}
		return evidence.ProtectedPage
	case m.Readable() && !m.Writable() && f.Fault.Access != evidence.Read:
		// If an instruction reads and writes, the write was refused.
		f.Fault.Access = evidence.Write
		return evidence.WriteToReadOnly
	case !m.Readable():
		return evidence.ProtectedPage
	}
	j.limits.limit("", fmt.Sprintf("the mapping of %v permits the access now (%s): it was changed after the fault", f.Fault.Addr, m.Perms))
	return evidence.ProtectedPage
}

// protectionFault judges a general protection or stack-segment fault, for which the kernel records
// no address. It looks for an operand whose computed address is not canonical, and for other
// reasons of such a fault.
func (j *judge) protectionFault(f *evidence.Failure) {
	f.Signal.Addr, f.Signal.HasAddr = 0, false
	if !j.cpu.pc().Canonical() {
		j.jumpFault(f, j.cpu.pc())
		return
	}
	if j.cpu.inst == nil {
		j.limits.limit("", fmt.Sprintf("the kernel recorded no fault address and the instruction at %v cannot be read", j.cpu.pc()))
		return
	}
	if j.cpu.inst.Flow == x86.FlowReturn || j.cpu.inst.Flow == x86.FlowCall || j.cpu.inst.Flow == x86.FlowJump {
		if target, ok := j.cpu.flowTarget(); ok && !target.Canonical() {
			j.jumpFault(f, target)
			return
		}
	}
	for i := range j.cpu.inst.Operands {
		op := &j.cpu.inst.Operands[i]
		if !op.IsMemory || op.Access == "" {
			continue
		}
		addr, ok := j.cpu.effective(&op.Memory)
		if ok && (!addr.Canonical() || !(addr + evidence.Addr(max(op.Size, 1)-1)).Canonical()) {
			f.Kind = evidence.NonCanonical
			f.Fault = &evidence.Fault{Addr: addr, Access: op.Access, Size: op.Size, Place: j.process.Place(addr), Proof: evidence.Inferred}
			return
		}
	}
	j.otherProtection(f)
}

func (j *judge) jumpFault(f *evidence.Failure, target evidence.Addr) {
	f.Kind = evidence.NonCanonical
	f.Fault = &evidence.Fault{Addr: target, Access: evidence.Execute, Place: j.process.Place(target), Proof: evidence.Inferred}
	f.Arrival = j.cpu.arrival(target)
}

// flowTarget is the target of a return, an indirect call or jump.
func (c *processor) flowTarget() (evidence.Addr, bool) {
	if c.inst.HasTarget {
		return evidence.Addr(c.inst.Target), true
	}
	if c.inst.Flow == x86.FlowReturn {
		v, err := image.Uint64(c, c.regs.SP())
		return evidence.Addr(v), err == nil
	}
	for i := range c.inst.Operands {
		op := &c.inst.Operands[i]
		switch {
		case op.Implicit || op.IsImm:
		case op.IsMemory:
			addr, ok := c.effective(&op.Memory)
			if !ok {
				return 0, false
			}
			v, err := image.Uint64(c, addr)
			return evidence.Addr(v), err == nil
		default:
			v, ok := c.register(op.Reg)
			return evidence.Addr(v), ok
		}
	}
	return 0, false
}

// otherProtection names the reasons of a general protection fault other than addresses that are not
// canonical: operands that must be aligned, and privileged instructions (Intel SDM volume 3, 6.15,
// interrupt 13).
func (j *judge) otherProtection(f *evidence.Failure) {
	for i := range j.cpu.inst.Operands {
		op := &j.cpu.inst.Operands[i]
		if !op.IsMemory || op.Access == "" || op.Size < 16 || op.Size > 64 {
			continue
		}
		addr, ok := j.cpu.effective(&op.Memory)
		if ok && uint64(addr)%uint64(op.Size) != 0 {
			f.Kind, f.Proof = evidence.UnknownFailure, evidence.Inferred
			f.Fault = &evidence.Fault{Addr: addr, Access: op.Access, Size: op.Size, Place: j.process.Place(addr), Proof: evidence.Inferred}
			f.Message = evidence.Say(fmt.Sprintf("%s needs an address that is a multiple of %d", j.cpu.inst.Op, op.Size))
			return
		}
	}
	f.Kind = evidence.UnknownFailure
	if privileged[j.cpu.inst.Op] {
		f.Kind = evidence.IllegalInsn
		f.Message = evidence.Say(j.cpu.inst.Op + " is for the kernel only")
	}
}

var privileged = map[string]bool{
	"hlt": true, "cli": true, "sti": true, "in": true, "out": true, "insb": true, "insd": true, "outsb": true,
	"outsd": true, "wrmsr": true, "rdmsr": true, "invd": true, "wbinvd": true, "lgdt": true, "lidt": true,
	"lmsw": true, "clts": true, "invlpg": true, "swapgs": true, "rdpmc": true,
}

// textIn returns the characters that the bytes of a value spell, if they are text: at least four
// characters, followed only by zero bytes.
func textIn(v uint64) string {
	var out []byte
	for ; v != 0; v >>= 8 {
		c := byte(v)
		if c < 0x20 || c > 0x7e {
			return ""
		}
		out = append(out, c)
	}
	if len(out) < 4 {
		return ""
	}
	return string(out)
}
