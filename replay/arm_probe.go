package replay

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"diagnose/internal/ptrace"
	"diagnose/internal/x86"
)

// probe compares a thread's registers with a place's inside of the process:
// the instructions at pc are replaced by a jump to code that compares, stops
// the thread by int3 if all are equal, and else executes them and goes back. A
// debug register tells each arrival at pc for thousands of times as much,
// and serves where the instructions cannot be replaced.
//
// The code and its data lie in pages of their own, mapped while the probe is
// there; nothing of the program's is written but the five bytes at pc.
type probe struct {
	pc, end  uint64 // of the instructions
	page     uint64
	original []byte // what the jump replaced
	// hit is the address behind the int3, from where a thread goes on that is
	// not at the place after all.
	hit   uint64
	moved []x86.Inst
	// checks are words of memory that the probe compares as well.
	checks []check
}

type check struct{ addr, value uint64 }

const (
	probeJump  = 5
	probePages = 2 // code, data: stores beside code that runs are slow
	pageSize   = 4096
	// Offsets in the data page.
	probeRAX      = 0
	probeFlags    = 8
	probeCount    = 16
	probeWords    = 512
	probeExpected = 64 // 18 registers as a place has them; of rflags, what lahf and seto give
)

var errNoProbe = errors.New("no probe is possible")

// setProbe puts a probe at the place, for a thread that is stopped. The error
// is errNoProbe where that cannot be.
func (b *breakpoints) setProbe(t *thread, p *place) (*probe, error) {
	moved, size, err := b.movable(p.pc)
	if err != nil {
		return nil, err
	}
	if b.meets(t, p.pc, p.pc+uint64(size)) {
		return nil, errNoProbe
	}
	page, err := b.probePage(t, p.pc)
	if err != nil {
		return nil, err
	}
	x := &probe{pc: p.pc, end: p.pc + uint64(size), page: page, moved: moved}
	code, err := x.assemble(p)
	if err == nil {
		err = b.install(x, p, code)
	}
	if err != nil {
		return nil, errors.Join(err, b.unmapProbe(t, x))
	}
	return x, nil
}

func (b *breakpoints) install(x *probe, p *place, code []byte) error {
	data := make([]byte, probeExpected+8*len(p.registers))
	for i, value := range p.registers {
		if i == contextFlags {
			value = flagWord(value)
		}
		binary.LittleEndian.PutUint64(data[probeExpected+8*i:], value)
	}
	x.original = make([]byte, probeJump)
	if _, err := b.c.memory.ReadAt(x.original, int64(x.pc)); err != nil {
		return err
	}
	if _, err := b.c.memory.WriteAt(data, int64(x.page+pageSize)); err != nil {
		return err
	}
	if _, err := b.c.memory.WriteAt(code, int64(x.page)); err != nil {
		return err
	}
	jump := binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(x.page-x.pc-probeJump))
	_, err := b.c.memory.WriteAt(jump, int64(x.pc))
	return err
}

// mostChecks fit into the page.
const mostChecks = 64

// sharpen is for a thread that the probe stopped, and whose memory differs from
// what the place has: from now on the probe compares a word that differs.
func (b *breakpoints) sharpen(t *thread, p *place, regs *ptrace.Registers) error {
	x := p.probe
	if len(x.checks) == mostChecks {
		return nil
	}
	c, found := b.differing(p)
	if !found {
		return nil
	}
	if _, err := b.c.memory.WriteAt(binary.LittleEndian.AppendUint64(nil, c.value), int64(x.page+pageSize+probeWords+8*uint64(len(x.checks)))); err != nil {
		return err
	}
	x.checks = append(x.checks, c)
	code, err := x.assemble(p)
	if err != nil {
		return err
	}
	if _, err := b.c.memory.WriteAt(code, int64(x.page)); err != nil {
		return err
	}
	regs.Rip = x.hit
	return ptrace.SetRegisters(t.tid, regs)
}

// differing finds a word that the place has otherwise than memory now; the data
// first, where a counter may be.
func (b *breakpoints) differing(p *place) (check, bool) {
	for i := len(p.known) - 1; i >= 0; i-- {
		k := p.known[i]
		have := make([]byte, len(k.data))
		if _, err := b.c.memory.ReadAt(have, int64(k.addr)); err != nil {
			continue
		}
		if at := firstDifference(k.data, have, 0) &^ 7; at+8 <= len(have) {
			return check{k.addr + uint64(at), binary.LittleEndian.Uint64(k.data[at:])}, true
		}
	}
	return check{}, false
}

// meets reports whether other threads' places or probes are in the way of a
// probe for [pc, end).
func (b *breakpoints) meets(t *thread, pc, end uint64) bool {
	for tid, other := range b.threads {
		if q := other.place; q != nil && tid != t.tid &&
			(q.pc > pc && q.pc < end || q.probe != nil && q.probe.pc < end && q.probe.end > pc) {
			return true
		}
	}
	return false
}

// demote gives threads whose probes have replaced the instruction at pc a
// debug register instead. They wait in the engine: the caller's thread runs.
func (b *breakpoints) demote(t *thread, pc uint64) error {
	for tid, other := range b.threads {
		q := other.place
		if q == nil || q.probe == nil || tid == t.tid || pc <= q.probe.pc || pc >= q.probe.end {
			continue
		}
		if err := b.removeProbe(t, q.probe); err != nil {
			return err
		}
		q.probe = nil
		if err := ptrace.Interrupt(tid); err != nil {
			return err
		}
		stop, err := ptrace.WaitFor(tid)
		if err != nil {
			return err
		}
		if stop.Kind != ptrace.Interrupted {
			return fmt.Errorf("replay: thread %d came to %v while it was waited for", tid, stop)
		}
		if err := other.set(tid); err != nil {
			return err
		}
		if err := ptrace.Cont(tid, 0); err != nil {
			return err
		}
	}
	return nil
}

// removeProbe puts the program's text back.
func (b *breakpoints) removeProbe(t *thread, x *probe) error {
	if _, err := b.c.memory.WriteAt(x.original, int64(x.pc)); err != nil {
		return err
	}
	return b.unmapProbe(t, x)
}

func (b *breakpoints) unmapProbe(t *thread, x *probe) error {
	if result, err := ptrace.SystemCall(t.tid, unix.SYS_MUNMAP, x.page, probePages*pageSize); err != nil || result != 0 {
		return fmt.Errorf("replay: the memory of a probe: %w", errors.Join(err, unix.Errno(-result)))
	}
	return nil
}

// probePage maps memory that a jump from pc reaches, away from where the
// program's mappings grow.
func (b *breakpoints) probePage(t *thread, pc uint64) (uint64, error) {
	maps, err := readMaps(b.c.pid)
	if err != nil {
		return 0, err
	}
	const step, steps = 256 << 20, 7 // up to 1.75 GiB: displacements have 31 bits
	for i := int64(steps); i >= -steps; i-- {
		at := (pc + uint64(i*step)) &^ (pageSize - 1)
		if i == 0 || at < 1<<16 || at >= 1<<47 || maps.overlaps(at-pageSize, at+(probePages+1)*pageSize) {
			continue
		}
		result, err := ptrace.SystemCall(t.tid, unix.SYS_MMAP, at, probePages*pageSize,
			unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, ^uint64(0), 0)
		if err != nil {
			return 0, err
		}
		if uint64(result) == at {
			return at, nil
		}
	}
	return 0, errNoProbe
}

func (l mappings) overlaps(low, high uint64) bool {
	for i := range l {
		if l[i].start < high && l[i].end > low {
			return true
		}
	}
	return false
}

// movable are the whole instructions at pc that the jump replaces. Nothing may
// come to one of them but the first: no jump and no return; a table of a
// switch is looked for in the same object.
func (b *breakpoints) movable(pc uint64) (moved []x86.Inst, size int, err error) {
	const longest = probeJump + 15
	code := make([]byte, longest+15)
	n, _ := b.c.memory.ReadAt(code, int64(pc))
	code = code[:n]
	for size < probeJump {
		inst, err := x86.Decode(code[min(size, n):], pc+uint64(size))
		if err != nil || size+inst.Len > n {
			return nil, 0, errNoProbe
		}
		switch {
		case inst.Flow == x86.FlowNext:
		case (inst.Flow == x86.FlowBranch || inst.Flow == x86.FlowJump) && inst.HasTarget && branchOpcode(&inst) != nil:
		default:
			return nil, 0, errNoProbe
		}
		moved = append(moved, inst)
		size += inst.Len
		if inst.Flow == x86.FlowJump && size < probeJump {
			return nil, 0, errNoProbe // what follows may be another function
		}
	}
	if len(moved) > 1 && b.entered(pc, pc+uint64(size)) {
		return nil, 0, errNoProbe
	}
	return moved, size, nil
}

// branchOpcode is the form with 32 bits of displacement; nil: there is none.
func branchOpcode(inst *x86.Inst) []byte {
	switch c := inst.Bytes[0]; {
	case c == 0xe9 || c == 0xeb:
		return []byte{0xe9}
	case c >= 0x70 && c <= 0x7f:
		return []byte{0x0f, c + 0x10}
	case c == 0x0f && inst.Bytes[1]&0xf0 == 0x80:
		return inst.Bytes[:2]
	}
	return nil
}

// entered reports whether something may lead between start and end, both not
// included: a jump, an entry of a switch's table, or a handler that returns.
func (b *breakpoints) entered(start, end uint64) bool {
	within := func(a uint64) bool { return a > start && a < end }
	for p := range b.placedAt {
		if within(p) {
			return true
		}
	}
	maps, err := readMaps(b.c.pid)
	own := maps.at(start)
	if err != nil || own == nil {
		return true
	}
	const most = 64 << 20
	for i := range maps {
		m := &maps[i]
		if m.perms[0] != 'r' || m != own && (m.perms[1] == 'w' || m.path == "" || m.path != own.path) || m.size() > most {
			continue
		}
		text := make([]byte, m.size())
		if _, err := b.c.memory.ReadAt(text, int64(m.start)); err != nil {
			return true
		}
		if m == own && shortJumpsWithin(text, m.start, start, end) ||
			m.perms[2] == 'x' && longJumpsWithin(text, m.start, within) ||
			m.perms[2] != 'x' && tableWithin(text, m.start, start, end, own.span) {
			return true
		}
	}
	return false
}

// longJumpsWithin takes every byte for the start of a jump or call with 32 bits
// of displacement: hardly any of those that are none lead to so few bytes.
func longJumpsWithin(text []byte, base uint64, within func(uint64) bool) bool {
	for i := 0; i+6 <= len(text); i++ {
		n := 1
		switch c := text[i]; {
		case c == 0xe8 || c == 0xe9:
		case c == 0x0f && text[i+1]&0xf0 == 0x80:
			n = 2
		default:
			continue
		}
		if within(base + uint64(i+n+4) + uint64(int64(int32(binary.LittleEndian.Uint32(text[i+n:]))))) {
			return true
		}
	}
	return false
}

// shortJumpsWithin decodes the code that jumps with 8 bits of displacement can
// be in: behind end, which is an instruction's start, and before start from
// several places, for decoding finds its way to start soon.
func shortJumpsWithin(text []byte, base, start, end uint64) bool {
	const reach, lead, starts = 144, 256, 16
	at, behind := int(start-base), int(end-base)
	if _, leads := sweepTo(text, base, behind, min(behind+reach, len(text)), start, end); leads {
		return true
	}
	for i := range starts {
		from := at - reach - lead + i
		if arrives, leads := sweepTo(text, base, max(from, 0), at, start, end); arrives && leads {
			return true
		}
	}
	_, leads := sweepTo(text, base, at, behind, start, end)
	return leads
}

// sweepTo decodes from one offset to another; arrives: an instruction starts at
// the latter. leads: a jump leads between start and end.
func sweepTo(text []byte, base uint64, from, to int, start, end uint64) (arrives, leads bool) {
	for from < to {
		inst, err := x86.Decode(text[from:], base+uint64(from))
		if err != nil {
			from++
			continue
		}
		leads = leads || inst.HasTarget && inst.Target > start && inst.Target < end
		from += inst.Len
	}
	return from == to, leads
}

// tableWithin looks for addresses, and for tables of at most 4 KiB with offsets
// of code from their own start.
func tableWithin(data []byte, base, start, end uint64, code span) bool {
	const table = 4096
	for i := 0; i+8 <= len(data); i += 8 {
		if a := binary.LittleEndian.Uint64(data[i:]); a > start && a < end {
			return true
		}
	}
	// Compilers make no tables of fewer entries.
	const entries = 4
	offset := func(i int) int64 { return int64(int32(binary.LittleEndian.Uint32(data[i:]))) }
	for i := 0; i+4 <= len(data); i += 4 {
		at := int64(base) + int64(i)
		first := max(at-table, int64(base), int64(start)+1-offset(i))
		last := min(at, int64(end)-1-offset(i))
		for t := (first + 3) &^ 3; t <= last; t += 4 {
			from := int(t - int64(base))
			j := from
			for ; j+4 <= len(data) && j-from < table; j += 4 {
				if a := uint64(t + offset(j)); a < code.start || a >= code.end {
					break
				}
			}
			if j > i && j-from >= 4*entries {
				return true
			}
		}
	}
	return false
}

// resultFlags are carry, parity, adjust, zero, sign and overflow.
const resultFlags = 0x8d5

// flagWord is what lahf (ah) and seto (al) make of rflags.
func flagWord(flags uint64) uint64 { return flags&0xd5<<8 | 2<<8 | flags>>11&1 }

// flagsOf takes that back.
func flagsOf(word uint64) uint64 { return word>>8&0xd5 | word&1<<11 }

// assembler writes the code of a probe, which refers to its data by rip.
type assembler struct {
	bytes.Buffer
	page uint64
	miss []int // where a displacement to the miss is wanted
}

// data appends an instruction that ends with the displacement of a word.
func (a *assembler) data(offset int, code ...byte) {
	a.Write(code)
	at := a.page + uint64(a.Len()) + 4
	a.word(a.page + pageSize + uint64(offset) - at)
}

func (a *assembler) word(v uint64) { a.Write(binary.LittleEndian.AppendUint32(nil, uint32(v))) }

// unless goes to the miss if the comparison before it found a difference.
func (a *assembler) unless() {
	a.Write([]byte{0x0f, 0x85}) // jne
	a.miss = append(a.miss, a.Len())
	a.word(0)
}

// contextNumbers are the processor's numbers of the registers that a place
// has, but for rax, rip and rflags.
var contextNumbers = map[int]byte{0: 8, 1: 9, 2: 10, 3: 11, 4: 12, 5: 13, 6: 14, 7: 15, 8: 7, 9: 6, 10: 5, 11: 3, 12: 2, 14: 1, 15: 4}

const contextRAX = 13

// assemble makes the code. Flags and rax are in the data while it runs.
func (x *probe) assemble(p *place) ([]byte, error) {
	a := &assembler{page: x.page}
	a.data(probeRAX, 0x48, 0x89, 0x05)      // mov %rax, saved
	a.Write([]byte{0x9f, 0x0f, 0x90, 0xc0}) // lahf; seto %al
	a.data(probeFlags, 0x66, 0x89, 0x05)    // mov %ax, saved flags
	a.data(probeCount, 0x48, 0xff, 0x05)    // incq count
	for i := range p.registers {
		if n, ok := contextNumbers[i]; ok {
			a.data(probeExpected+8*i, 0x48|n>>3<<2, 0x39, n&7<<3|5) // cmp %reg, expected
			a.unless()
		}
	}
	a.data(probeRAX, 0x48, 0x8b, 0x05)                   // mov saved, %rax
	a.data(probeExpected+8*contextRAX, 0x48, 0x3b, 0x05) // cmp expected, %rax
	a.unless()
	if p.flags&resultFlags == resultFlags {
		a.data(probeFlags, 0x0f, 0xb7, 0x05)             // movzwl saved flags, %eax
		a.data(probeExpected+8*contextFlags, 0x3b, 0x05) // cmp expected, %eax
		a.unless()
	}
	for i, c := range x.checks {
		a.Write(binary.LittleEndian.AppendUint64([]byte{0x48, 0xb8}, c.addr)) // movabs addr, %rax
		a.Write([]byte{0x48, 0x8b, 0x00})                                     // mov (%rax), %rax
		a.data(probeWords+8*i, 0x48, 0x3b, 0x05)
		a.unless()
	}
	a.WriteByte(0xcc)
	x.hit = x.page + uint64(a.Len())
	a.data(probeFlags, 0x0f, 0xb7, 0x05) // movzwl saved flags, %eax
	a.Write([]byte{0x04, 0x7f, 0x9e})    // add $0x7f, %al, which sets the overflow; sahf
	a.data(probeRAX, 0x48, 0x8b, 0x05)
	for i := range x.moved {
		if err := a.move(&x.moved[i]); err != nil {
			return nil, err
		}
	}
	a.WriteByte(0xe9)
	a.word(x.end - (a.page + uint64(a.Len()) + 4))
	code := a.Bytes()
	for _, at := range a.miss {
		binary.LittleEndian.PutUint32(code[at:], uint32(x.hit-x.page-uint64(at)-4))
	}
	return code, nil
}

// move appends an instruction of the program's that does what it did where it
// was.
func (a *assembler) move(inst *x86.Inst) error {
	if inst.HasTarget {
		a.Write(branchOpcode(inst))
		return a.relative(inst.Target, 4)
	}
	for i := range inst.Operands {
		o := &inst.Operands[i]
		if !o.IsMemory || o.Memory.Base != x86.RIP {
			continue
		}
		target := inst.PC + uint64(inst.Len) + uint64(o.Memory.Disp)
		want := binary.LittleEndian.AppendUint32(nil, uint32(o.Memory.Disp))
		at := bytes.Index(inst.Bytes, want)
		if at < 0 || at != bytes.LastIndex(inst.Bytes, want) {
			return errNoProbe
		}
		a.Write(inst.Bytes[:at])
		if err := a.relative(target, inst.Len-at); err != nil {
			return err
		}
		a.Write(inst.Bytes[at+4:])
		return nil
	}
	a.Write(inst.Bytes)
	return nil
}

// relative appends the displacement of a target, for an instruction that ends
// so many bytes behind the displacement's start.
func (a *assembler) relative(target uint64, end int) error {
	d := int64(target - (a.page + uint64(a.Len()) + uint64(end)))
	if d != int64(int32(d)) {
		return errNoProbe
	}
	a.word(uint64(d))
	return nil
}

// registers are those with which the thread stands at pc that the probe has
// stopped, and how often pc was reached.
func (b *breakpoints) probeRegisters(x *probe, regs *ptrace.Registers) (at ptrace.Registers, count uint64, err error) {
	var data [probeCount + 8]byte
	if _, err := b.c.memory.ReadAt(data[:], int64(x.page+pageSize)); err != nil {
		return at, 0, err
	}
	at = *regs
	at.Rip, at.Rax = x.pc, binary.LittleEndian.Uint64(data[probeRAX:])
	at.Eflags = at.Eflags&^resultFlags | flagsOf(uint64(binary.LittleEndian.Uint16(data[probeFlags:])))
	at.Orig_rax = ^uint64(0)
	return at, binary.LittleEndian.Uint64(data[probeCount:]), nil
}
