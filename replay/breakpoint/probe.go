package breakpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sys/unix"

	"diagnose/replay/inline"
	"diagnose/replay/patch"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// probe compares a thread's registers with a place's inside of the process. The instructions at pc
// are replaced by a jump to code that compares. If all registers are equal, the code stops the
// thread by int3, else it executes the instructions and jumps back. A debug register stops at each
// arrival at pc, which costs thousands of times as much. It is used where the instructions cannot
// be replaced.
//
// The code and its data are in their own pages, mapped while the probe is installed. Of the
// program's memory only the five bytes at pc are overwritten.
type probe struct {
	patch.Window
	process *tracee.Process
	pc      uint64 // of the place
	page    uint64
	// jumps are in the program's text; replaced are the bytes that they replaced.
	jumps, replaced []tracee.Words
	// hit is the address after the int3. A thread that is not at the place after all continues
	// there.
	hit uint64
	// checks are words of memory that the probe also compares.
	checks []check
	// placed are the offsets in the page where each of the moved instructions starts and ends.
	placed []uint64
}

type check struct{ addr, value uint64 }

const (
	probePages = 2 // code, data: stores next to code that runs are slow
	// Offsets in the data page.
	probeRAX      = 0
	probeFlags    = 8
	probeWords    = 512
	probeExpected = 64 // 18 registers as a place has them; of rflags, the result of lahf and seto
)

// setProbe installs a probe at the place, through a stopped thread. The error is
// patch.ErrImpossible if none is possible.
func (b *Breakpoints) setProbe(t *tracee.Thread, p *place) (*probe, error) {
	if err := b.takeOver(t, p.pc); err != nil {
		return nil, err
	}
	w := b.inlinedWindow(t, p.pc)
	if p.generated {
		if w = b.generatedWindow(t, p.pc); w == nil {
			return nil, patch.ErrImpossible
		}
	}
	if w == nil {
		entries, text, base, known := b.entries(t, p.pc)
		if !known {
			return nil, patch.ErrImpossible
		}
		if w = patch.FindWindow(text, base, p.pc, entries); w == nil || b.obstructed(t, w) {
			return nil, patch.ErrImpossible
		}
	}
	if err := b.giveWay(w); err != nil {
		return nil, err
	}
	page, err := b.process.MapNear(t, w.Start, probePages*tracee.PageSize)
	if err != nil {
		return nil, err
	}
	x := &probe{Window: *w, process: b.process, pc: p.pc, page: page}
	code, err := x.assemble(p)
	if err == nil {
		err = x.install(p, code)
	}
	if err != nil {
		return nil, errors.Join(err, x.unmap(t))
	}
	return x, nil
}

// takeOver removes the probes of other threads that begin at a pc. Threads that compute in the same code often have their
// places at one instruction, and one of them runs at a time: when another does, a debug register stops it at its first arrival,
// and the probe is its own again.
func (b *Breakpoints) takeOver(t *tracee.Thread, pc uint64) error {
	for tid, other := range b.threads {
		q := other.place
		if tid == t.TID || q == nil || q.probe == nil || q.pc != pc || q.probe.Start != pc {
			continue
		}
		if err := q.probe.remove(t); err != nil {
			return err
		}
		q.probe, q.retry = nil, true
		if err := b.process.WhileStopped(tid, b.set); err != nil {
			return err
		}
	}
	return nil
}

// inlinedWindow returns the code that a probe's jump replaces where inlined has replaced the
// program's code; nil: it has not, or another thread's probe is there.
func (b *Breakpoints) inlinedWindow(t *tracee.Thread, pc uint64) *patch.Window {
	in := b.inlined
	if in == nil {
		return nil
	}
	x, at := in.WindowOf(pc)
	if x == nil {
		return nil
	}
	w := &patch.Window{Start: at, End: at + patch.JumpSize}
	if b.obstructed(t, w) {
		return nil
	}
	return w
}

// Exposed is called when a window of inlined has been removed, or a jump from its code.
func (b *Breakpoints) Exposed(w *inline.Window) error {
	for tid, x := range b.threads {
		p := x.place
		if p == nil || p.probe == nil || !slices.Contains(w.Copies, p.probe.Start) {
			continue
		}
		t := b.process.Threads[tid]
		if t == nil {
			continue
		}
		b.leaveProbe(p)
		if err := b.process.WhileStopped(tid, b.set); err != nil {
			return err
		}
	}
	return nil
}

// install writes the probe's code and data, and puts its jumps into the text.
func (x *probe) install(p *place, code []byte) error {
	data := make([]byte, probeExpected+8*len(p.registers))
	for i, value := range p.registers {
		if i == contextFlags {
			value = patch.FlagWord(value)
		}
		binary.LittleEndian.PutUint64(data[probeExpected+8*i:], value)
	}
	if _, err := x.process.Memory.WriteAt(data, int64(x.page+tracee.PageSize)); err != nil {
		return err
	}
	if _, err := x.process.Memory.WriteAt(code, int64(x.page)); err != nil {
		return err
	}
	from := x.Start
	if x.Hop != 0 {
		from = x.Hop
	}
	x.jumps = []tracee.Words{{Addr: from, Data: binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(x.page-from-patch.JumpSize))}}
	if x.Hop != 0 {
		x.jumps = append(x.jumps, tracee.Words{Addr: x.Start, Data: []byte{0xeb, byte(x.Hop - x.Start - patch.ShortJumpSize)}})
	}
	for _, j := range x.jumps {
		original := make([]byte, len(j.Data))
		if _, err := x.process.Memory.ReadAt(original, int64(j.Addr)); err != nil {
			return err
		}
		x.replaced = append(x.replaced, tracee.Words{Addr: j.Addr, Data: original})
	}
	return x.putIn()
}

// mostChecks is how many checks fit into the page.
const mostChecks = 64

// compareMore handles a thread that the probe stopped, but whose memory differs from the place's:
// from now on the probe compares a word that differs.
func (x *probe) compareMore(t *tracee.Thread, p *place, m io.ReaderAt, regs *ptrace.Registers) error {
	if len(x.checks) == mostChecks {
		return nil
	}
	c, found := p.differing(m)
	if !found {
		return nil
	}
	if _, err := x.process.Memory.WriteAt(binary.LittleEndian.AppendUint64(nil, c.value), int64(x.page+tracee.PageSize+probeWords+8*uint64(len(x.checks)))); err != nil {
		return err
	}
	x.checks = append(x.checks, c)
	code, err := x.assemble(p)
	if err != nil {
		return err
	}
	if _, err := x.process.Memory.WriteAt(code, int64(x.page)); err != nil {
		return err
	}
	regs.Rip = x.hit
	return ptrace.SetRegisters(t.TID, regs)
}

// differing finds a word of the place that differs from memory now. It begins with the data, where
// a counter may be.
func (p *place) differing(m io.ReaderAt) (check, bool) {
	for i := len(p.known) - 1; i >= 0; i-- {
		k := p.known[i]
		have := make([]byte, len(k.Data))
		if _, err := m.ReadAt(have, int64(k.Addr)); err != nil {
			continue
		}
		if at := tracee.FirstDifference(k.Data, have, 0) &^ 7; at+8 <= len(have) {
			return check{k.Addr + uint64(at), binary.LittleEndian.Uint64(k.Data[at:])}, true
		}
	}
	return check{}, false
}

// obstructed reports whether a probe would conflict with other threads' places or probes, or with
// a moment.
func (b *Breakpoints) obstructed(t *tracee.Thread, w *patch.Window) bool {
	if in := b.inlined; in != nil && in.OverlapsWindow(w) {
		return true
	}
	if slices.ContainsFunc(b.everywhere, w.Hides) {
		return true
	}
	for tid, other := range b.threads {
		if w.Hides(other.moment) || w.Hides(other.point.pc) {
			return true
		}
		if q := other.place; q != nil && tid != t.TID &&
			(w.Hides(q.pc) || q.probe != nil && w.Overlaps(&q.probe.Window)) {
			return true
		}
	}
	return false
}

// demote makes a pc visible to a debug register.
func (b *Breakpoints) demote(t *tracee.Thread, pc uint64) error {
	if err := b.demoteProbes(t, pc); err != nil {
		return err
	}
	return b.expose(pc)
}

// demoteProbes replaces the probes that hide a pc by debug registers. Their threads wait in the
// engine. The caller's thread runs, and the caller sets its registers.
func (b *Breakpoints) demoteProbes(t *tracee.Thread, pc uint64) error {
	for tid, other := range b.threads {
		q := other.place
		if q == nil || q.probe == nil || !q.probe.Hides(pc) {
			continue
		}
		if err := q.probe.remove(t); err != nil {
			return err
		}
		q.probe = nil
		if tid == t.TID {
			continue
		}
		if err := b.process.WhileStopped(tid, b.set); err != nil {
			return err
		}
	}
	return nil
}

// remove restores the program's text and unmaps the probe.
func (x *probe) remove(t *tracee.Thread) error {
	if err := x.takeOut(); err != nil {
		return err
	}
	return x.unmap(t)
}

// takeOut restores the program's text. Code that the program has written there meanwhile stays.
func (x *probe) takeOut() error {
	for i, r := range x.replaced {
		if err := x.exchange(&x.jumps[i], &r); err != nil {
			return err
		}
	}
	return nil
}

// exchange writes bytes in the place of others of the same length, if these are there.
func (x *probe) exchange(old, next *tracee.Words) error {
	have := make([]byte, len(old.Data))
	if _, err := x.process.Memory.ReadAt(have, int64(old.Addr)); err != nil {
		return err
	}
	if !bytes.Equal(have, old.Data) {
		return nil
	}
	_, err := x.process.Memory.WriteAt(next.Data, int64(next.Addr))
	return err
}

// unmap unmaps the memory of the probe. The thread is stopped.
func (x *probe) unmap(t *tracee.Thread) error {
	result, err := ptrace.SystemCall(t.TID, unix.SYS_MUNMAP, x.page, probePages*tracee.PageSize)
	if err == nil {
		err = ptrace.ResultError(result)
	}
	if err != nil {
		return fmt.Errorf("replay: the memory of a probe: %w", err)
	}
	return nil
}

// assembler writes the code of a probe, which addresses its data relative to rip.
type assembler struct {
	patch.Assembler
	miss []int // where a displacement to the miss is to be filled in
}

// data appends an instruction that ends with the displacement of a word.
func (a *assembler) data(offset int, code ...byte) {
	a.Write(code)
	at := a.Base + uint64(a.Len()) + 4
	a.Word(a.Base + tracee.PageSize + uint64(offset) - at)
}

// unless jumps to the miss if the comparison before it found a difference.
func (a *assembler) unless() {
	a.Write([]byte{0x0f, 0x85}) // jne
	a.miss = append(a.miss, a.Len())
	a.Word(0)
}

// contextNumbers are the hardware numbers of a place's registers, except for rax, rip and rflags.
var contextNumbers = map[int]byte{0: 8, 1: 9, 2: 10, 3: 11, 4: 12, 5: 13, 6: 14, 7: 15, 8: 7, 9: 6, 10: 5, 11: 3, 12: 2, 14: 1, 15: 4}

const contextRAX = 13

// assemble makes the code. Flags and rax are saved in the data while it runs.
func (x *probe) assemble(p *place) ([]byte, error) {
	a := &assembler{Assembler: patch.Assembler{Base: x.page}}
	at := 0
	x.placed = x.placed[:0]
	for ; at < len(x.Moved) && x.Moved[at].PC != x.pc; at++ {
		if err := x.move(a, at); err != nil {
			return nil, err
		}
	}
	a.data(probeRAX, 0x48, 0x89, 0x05)      // mov %rax, saved
	a.Write([]byte{0x9f, 0x0f, 0x90, 0xc0}) // lahf; seto %al
	a.data(probeFlags, 0x66, 0x89, 0x05)    // mov %ax, saved flags
	for i := range p.registers {
		if n, ok := contextNumbers[i]; ok {
			a.data(probeExpected+8*i, 0x48|n>>3<<2, 0x39, n&7<<3|5) // cmp %reg, expected
			a.unless()
		}
	}
	a.data(probeRAX, 0x48, 0x8b, 0x05)                   // mov saved, %rax
	a.data(probeExpected+8*contextRAX, 0x48, 0x3b, 0x05) // cmp expected, %rax
	a.unless()
	if p.flags&patch.ResultFlags == patch.ResultFlags {
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
	a.WriteByte(tracee.Int3)
	x.hit = x.page + uint64(a.Len())
	a.data(probeFlags, 0x0f, 0xb7, 0x05) // movzwl saved flags, %eax
	a.Write([]byte{0x04, 0x7f, 0x9e})    // add $0x7f, %al, which sets the overflow; sahf
	a.data(probeRAX, 0x48, 0x8b, 0x05)
	for i := at; i < len(x.Moved); i++ {
		if err := x.move(a, i); err != nil {
			return nil, err
		}
	}
	a.WriteByte(0xe9)
	a.Word(x.End - (a.Base + uint64(a.Len()) + 4))
	code := a.Bytes()
	for _, at := range a.miss {
		binary.LittleEndian.PutUint32(code[at:], uint32(x.hit-x.page-uint64(at)-4))
	}
	return code, nil
}

func (x *probe) move(a *assembler, i int) error {
	start := uint64(a.Len())
	err := a.Move(&x.Moved[i])
	x.placed = append(x.placed, start, uint64(a.Len()))
	return err
}

// enter moves a thread from pc into the probe, after the comparison.
func (x *probe) enter(t *tracee.Thread, regs *ptrace.Registers) error {
	data := binary.LittleEndian.AppendUint64(nil, regs.Rax)
	data = binary.LittleEndian.AppendUint64(data, patch.FlagWord(regs.Eflags))
	if _, err := x.process.Memory.WriteAt(data, int64(x.page+tracee.PageSize)); err != nil {
		return err
	}
	at := *regs
	at.Rip = x.hit
	return ptrace.SetRegisters(t.TID, &at)
}

// registersAtPlace returns the registers of a thread that the probe has stopped, as they would be
// at the place.
func (x *probe) registersAtPlace(regs *ptrace.Registers) (at ptrace.Registers, err error) {
	var data [probeFlags + 2]byte
	if _, err := x.process.Memory.ReadAt(data[:], int64(x.page+tracee.PageSize)); err != nil {
		return at, err
	}
	at = *regs
	at.Rip, at.Rax = x.pc, binary.LittleEndian.Uint64(data[probeRAX:])
	at.Eflags = at.Eflags&^patch.ResultFlags | patch.FlagsOf(uint64(binary.LittleEndian.Uint16(data[probeFlags:])))
	at.Orig_rax = ^uint64(0)
	return at, nil
}
