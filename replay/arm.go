package replay

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
)

// breakpoints is the placer. It finds a place of the log by a probe or by a debug register of the
// thread, and a moment by another debug register. The recording identifies a place by the thread's
// state. Equal states continue equally, so the first stop with the recorded state is the place.
type breakpoints struct {
	c       *controller
	threads map[int]*broken
	// placedAt are the pcs of placed signals: a handler may return to them.
	placedAt map[placedPC]bool
	// lifted: no probe is in the text (steps).
	lifted bool
}

// broken has the breakpoints of a thread.
type broken struct {
	place *place // nil: none
	// moment is the pc of breakAt, 0 if there is none; left is the number of arrivals still to
	// come.
	moment, left uint64
	point        point
	resume       []uint64 // where the thread is stepped again
	watches      *watchRegisters
	registers    int  // that are for none of the watches
	lifted       bool // it is stepped, so its place needs a register
}

// place is a pc with the state that makes it the one looked for.
type place struct {
	pc        uint64
	registers [18]uint64 // struct dg_signal_state
	flags     uint64     // the bits of the last of them that count
	// unread: the flags of results do not count at pc, and are these.
	unread  bool
	results uint64
	// matches compares what costs more than registers.
	matches func(t *thread) (bool, error)
	signal  int // 0: the thread's end
	info    ptrace.Siginfo
	probe   *probe // nil: a debug register
	// retry: a probe was not possible, perhaps for where the thread went on.
	retry bool
	known []words
	// rest: an instruction that repeats is on its way to the count that the
	// place has, and traps behind itself, at this address.
	rest uint64
}

// words are memory as it is at the place.
type words struct {
	addr uint64
	data []byte
}

type placedPC struct {
	thread uint32
	pc     uint64
}

func newPlacer(c *controller) placer {
	return &breakpoints{c: c, threads: map[int]*broken{}, placedAt: map[placedPC]bool{}}
}

func (b *breakpoints) of(t *thread) *broken {
	x := b.threads[t.tid]
	if x == nil {
		x = &broken{watches: &b.c.watchRegisters}
		b.threads[t.tid] = x
	}
	return x
}

func (b *breakpoints) arm(t *thread, event uint64) error {
	e, err := b.c.eventAt(event)
	if err != nil {
		return err
	}
	if e.Kind == record.KindPoint {
		return b.armPoint(t, e)
	}
	p, err := signalPlace(b.c.memory, e)
	if err != nil {
		return err
	}
	return b.await(t, p)
}

// await makes trap stop the thread at the place.
func (b *breakpoints) await(t *thread, p *place) error {
	x := b.of(t)
	if old := x.place; old != nil && old.probe != nil {
		if err := b.removeProbe(t, old.probe); err != nil {
			return err
		}
	}
	x.place = nil
	if err := b.demoteProbes(t, p.pc); err != nil {
		return err
	}
	b.ignoreFlags(p)
	if b.repeats(p.pc) == 0 {
		var err error
		if p.probe, err = b.setProbe(t, p); err != nil && !errors.Is(err, errNoProbe) {
			return err
		}
		p.retry = err != nil
	}
	x.place = p
	if p.probe == nil {
		if err := b.expose(p.pc); err != nil {
			return err
		}
	}
	return x.set(t.tid)
}

// expose makes a pc visible to a debug register.
func (b *breakpoints) expose(pc uint64) error {
	if in := b.c.inlined(); in != nil {
		return in.expose(pc)
	}
	return nil
}

// signalPlace is the place of a signal that came between two events.
func signalPlace(m io.ReaderAt, e *record.Event) (*place, error) {
	if e.Kind != record.KindSignal || len(e.Args) < 9 || len(e.Payloads) < 3 {
		return nil, fmt.Errorf("replay: event of kind %v is no signal with a state", e.Kind)
	}
	info, state, ranges := e.Payloads[0], e.Payloads[1], e.Payloads[2]
	p := &place{signal: int(e.Object)}
	var s agent.RawSignalState
	if len(info.Data) != len(p.info) || state.Kind != record.PayloadRegisters || len(state.Data) != binary.Size(s) ||
		ranges.Kind != record.PayloadRanges || len(ranges.Data)%16 != 0 || len(ranges.Data) == 0 {
		return nil, fmt.Errorf("replay: signal %d has no state in the log", e.Object)
	}
	copy(p.info[:], info.Data)
	if _, err := binary.Decode(state.Data, binary.LittleEndian, &s); err != nil {
		return nil, err
	}
	p.pc, p.registers, p.flags = e.Args[1], s.Registers, s.Flags
	parts := make([]agent.RawRange, len(ranges.Data)/16)
	if _, err := binary.Decode(ranges.Data, binary.LittleEndian, parts); err != nil {
		return nil, err
	}
	const most = 64 << 20
	for _, r := range parts {
		if r.Length > most {
			return nil, fmt.Errorf("replay: signal %d has a digest of %d bytes", e.Object, r.Length)
		}
	}
	for _, w := range e.Payloads[3:] {
		if w.Kind == record.PayloadWords {
			p.known = append(p.known, words{uint64(w.Addr), w.Data})
		}
	}
	want := digests{registers: e.Args[2], stack: e.Args[3], data: e.Args[4]}
	general := digest(state.Data[:8*len(s.Registers)], 0)
	p.matches = func(t *thread) (bool, error) { return want.match(t.tid, m, general, parts) }
	return p, nil
}

// digests are of what a signal interrupted.
type digests struct{ registers, stack, data uint64 }

// match compares in the order of cost. general is the digest of the general
// registers, which are known to be equal.
func (d digests) match(tid int, m io.ReaderAt, general uint64, ranges []agent.RawRange) (bool, error) {
	floating, err := ptrace.GetRegset(tid, ptrace.RegsetFP)
	if err != nil {
		return false, err
	}
	const xmm, size = 160, 256 // struct user_fpregs_struct
	if len(floating) < xmm+size {
		return false, fmt.Errorf("replay: %d bytes of vector registers", len(floating))
	}
	if digest(floating[xmm:xmm+size], general) != d.registers {
		return false, nil
	}
	read := func(r agent.RawRange, seed uint64) (uint64, error) {
		p := make([]byte, r.Length)
		_, err := m.ReadAt(p, int64(r.Address))
		return digest(p, seed), err
	}
	// Memory that is not there (yet) does not match.
	if stack, err := read(ranges[0], 0); err != nil || stack != d.stack {
		return false, nil
	}
	sum := uint64(0)
	for _, r := range ranges[1:] {
		if sum, err = read(r, sum); err != nil {
			return false, nil
		}
	}
	return sum == d.data, nil
}

// last is for a thread that has done its last event: where the core has it
// outside of the engine, or preempted at a point of its code, that is where it ends.
func (b *breakpoints) last(t *thread) (move, error) {
	if b.c.core == nil || !b.c.last() {
		return move{}, nil
	}
	end := b.c.recordedThreads()[t.index]
	if end == nil || end.raw.Inside != 0 && !end.preempted() || end.clones() || end.failed && b.c.faultOutcome() {
		return move{}, nil // it comes to rest by itself
	}
	p := b.finalPlace(end)
	if control, err := b.c.readControl(); err != nil {
		return move{}, err
	} else if p == nil || p.pc >= control.TextLow && p.pc < control.TextHigh {
		return move{}, nil
	}
	return move{}, b.await(t, p)
}

func (b *breakpoints) first(t *thread, end *coreThread, regs *ptrace.Registers) (move, error) {
	p := b.finalPlace(end)
	if p == nil {
		return move{}, nil
	}
	if p.equal(regs, nil) {
		if same, err := p.matches(t); err != nil {
			return move{}, err
		} else if same {
			return move{kind: moveHold}, nil
		}
	}
	return move{}, b.await(t, p)
}

// contextOrder are the registers as struct sigcontext has them, but for rflags.
var contextOrder = []image.Register{image.R8, image.R9, image.R10, image.R11, image.R12, image.R13, image.R14, image.R15,
	image.RDI, image.RSI, image.RBP, image.RBX, image.RDX, image.RAX, image.RCX, image.RSP, image.RIP}

func (b *breakpoints) finalPlace(end *coreThread) *place {
	p := &place{flags: statusFlags}
	registers, flags := end.Registers, end.Registers.Flags
	if end.preempted() {
		program := end.program()
		registers, flags = *imageRegisters(&program), program.Eflags
	}
	for i, r := range contextOrder {
		value, known := registers.Get(r)
		if !known {
			return nil
		}
		p.registers[i] = value
	}
	p.registers[17] = flags & p.flags
	p.pc = p.registers[16]
	const stackCompared = 16 << 10
	low := p.registers[15] - redZone
	want := make([]byte, stackCompared)
	// Other threads write to the control block, which lies at the stack's end.
	if end := end.raw.ThreadPointer; end > low && end-low < stackCompared {
		want = want[:end-low]
	}
	n, _ := b.c.core.ReadMemory(evidence.Addr(low), want)
	want = want[:n]
	p.known = []words{{low, want}}
	p.matches = func(t *thread) (bool, error) {
		// Loops that take a lock come by with equal registers and stack.
		if r, err := b.c.rthread(t.index); err != nil {
			return false, err
		} else if r.BudgetStart-r.Budget != end.raw.BudgetStart-end.raw.Budget {
			return false, nil
		}
		have := make([]byte, len(want))
		if _, err := b.c.memory.ReadAt(have, int64(low)); err != nil {
			return false, nil
		}
		return bytes.Equal(want, have), nil
	}
	return p
}

func (b *breakpoints) breakAt(t *thread, pc evidence.Addr, count uint64) error {
	x := b.of(t)
	if err := b.demote(t, uint64(pc)); err != nil {
		return err
	}
	x.moment, x.left = uint64(pc), count
	return x.set(t.tid)
}

// set writes the debug registers of a stopped thread.
func (x *broken) set(tid int) error {
	var pcs []uint64
	switch p := x.place; {
	case p == nil || p.probe != nil && !x.lifted:
	case p.rest != 0:
		pcs = append(pcs, p.rest)
	default:
		pcs = append(pcs, p.pc)
	}
	if x.moment != 0 {
		pcs = append(pcs, x.moment)
	}
	for _, pc := range x.resume {
		if pc != x.moment && pc != x.point.pc {
			pcs = append(pcs, pc)
		}
	}
	if x.point.pc != 0 && x.point.pc != x.moment {
		pcs = append(pcs, x.point.pc)
	}
	x.registers = len(pcs)
	return setDebug(tid, x.watches, pcs...)
}

func (b *breakpoints) breaks(t *thread) bool {
	x := b.threads[t.tid]
	return x != nil && x.registers > 0
}

func (b *breakpoints) trap(t *thread, regs *ptrace.Registers) (move, error) {
	x := b.threads[t.tid]
	if x == nil {
		return move{kind: moveForeign}, nil
	}
	p := x.place
	if p != nil && p.probe != nil && regs.Rip == p.probe.hit {
		return b.probed(t, x, regs)
	}
	here := p != nil && (p.probe == nil || x.lifted) && (p.rest == 0 && regs.Rip == p.pc || p.rest != 0 && regs.Rip == p.rest)
	preempts := x.point.pc != 0 && regs.Rip == x.point.pc
	if preempts {
		if x.point.left--; x.point.left == 0 {
			return b.reachedPoint(t, x, regs)
		}
	}
	if x.moment != 0 && regs.Rip == x.moment {
		if x.left--; x.left == 0 {
			// The kernel has set RF, with which the thread would also pass the other breakpoint at
			// this pc.
			if here {
				again := *regs
				again.Eflags &^= flagResume
				if err := ptrace.SetRegisters(t.tid, &again); err != nil {
					return move{}, err
				}
			}
			return move{kind: moveArrived}, nil
		}
		if !here {
			return move{}, nil
		}
	}
	if !here && preempts {
		return move{}, nil
	}
	if !here {
		return move{kind: moveForeign}, nil
	}
	if p.probe != nil {
		return b.reachedLifted(t, x, regs)
	}
	if p.rest != 0 {
		return b.rested(t, x, regs)
	}
	return b.reached(t, x, regs)
}

const flagResume = 0x10000

// probed handles a thread that a probe has stopped.
func (b *breakpoints) probed(t *thread, x *broken, regs *ptrace.Registers) (move, error) {
	p := x.place
	at, err := b.probeRegisters(p.probe, regs)
	if err != nil {
		return move{}, err
	}
	if !p.equal(&at, nil) {
		return move{}, nil
	}
	if same, err := p.matches(t); err != nil {
		return move{}, err
	} else if !same {
		return move{}, b.sharpen(t, p, regs)
	}
	if err := ptrace.SetRegisters(t.tid, &at); err != nil {
		return move{}, err
	}
	if err := b.removeProbe(t, p.probe); err != nil {
		return move{}, err
	}
	p.probe, *regs = nil, at
	return b.arrive(t, x, regs)
}

// reached handles a thread at the pc of its place.
func (b *breakpoints) reached(t *thread, x *broken, regs *ptrace.Registers) (move, error) {
	p := x.place
	if p.equal(regs, nil) {
		if same, err := p.matches(t); err != nil {
			return move{}, err
		} else if same {
			return b.arrive(t, x, regs)
		}
	} else if p.equal(regs, repeated) {
		if length := b.repeats(p.pc); length != 0 && regs.Rcx > p.registers[contextRCX] {
			return b.repeat(t, x, regs, length)
		}
	}
	return move{}, b.quicken(t, x, regs)
}

// quicken tries to put a probe for a thread that is at pc. It goes on behind the
// comparison, so nothing keeps it from having come from inside of the window.
func (b *breakpoints) quicken(t *thread, x *broken, regs *ptrace.Registers) error {
	p := x.place
	if !p.retry || b.lifted {
		return nil
	}
	p.retry = false
	probe, err := b.setProbe(t, p)
	if errors.Is(err, errNoProbe) {
		return nil
	} else if err != nil {
		return err
	}
	p.probe = probe
	if err := b.enterProbe(t, probe, regs); err != nil {
		return err
	}
	return x.set(t.tid)
}

func (b *breakpoints) arrive(t *thread, x *broken, regs *ptrace.Registers) (move, error) {
	p := x.place
	if p.unread {
		regs.Eflags = regs.Eflags&^resultFlags | p.results
		if err := ptrace.SetRegisters(t.tid, regs); err != nil {
			return move{}, err
		}
	}
	x.place = nil
	if err := x.set(t.tid); err != nil {
		return move{}, err
	}
	if p.signal == 0 {
		return move{kind: moveHold}, nil
	}
	// The handler returns to this pc.
	if err := b.expose(p.pc); err != nil {
		return move{}, err
	}
	b.placedAt[placedPC{t.index, p.pc}] = true
	return move{signal: p.signal, info: &p.info}, nil
}

// Positions in struct dg_signal_state.
const (
	contextRDI   = 8
	contextRSI   = 9
	contextRCX   = 14
	contextFlags = 17
)

// repeated are the registers that an instruction that repeats changes.
var repeated = []int{contextRDI, contextRSI, contextRCX, contextFlags}

// equal compares registers, but for some.
func (p *place) equal(regs *ptrace.Registers, except []int) bool {
	have := [...]uint64{regs.R8, regs.R9, regs.R10, regs.R11, regs.R12, regs.R13, regs.R14, regs.R15, regs.Rdi, regs.Rsi,
		regs.Rbp, regs.Rbx, regs.Rdx, regs.Rax, regs.Rcx, regs.Rsp, regs.Rip, regs.Eflags & p.flags}
	if except == nil {
		return have == p.registers
	}
	for i := range have {
		if have[i] != p.registers[i] && !slices.Contains(except, i) {
			return false
		}
	}
	return true
}

// repeats returns the length of the string instruction with a repeat prefix at
// pc; 0 if there is none. Such an instruction is interrupted between its
// repetitions, and a breakpoint traps before the first of them only.
func (b *breakpoints) repeats(pc uint64) int {
	var code [15]byte
	if _, err := b.c.memory.ReadAt(code[:], int64(pc)); err != nil {
		return 0
	}
	prefixed := false
	for i, c := range code {
		switch {
		case c == 0xf2 || c == 0xf3:
			prefixed = true
		case c == 0x66 || c == 0x67 || c >= 0x40 && c <= 0x4f:
		case prefixed && (c >= 0xa4 && c <= 0xa7 || c >= 0xaa && c <= 0xaf):
			return i + 1
		default:
			return 0
		}
	}
	return 0
}

// repeat lets the instruction do what it had done when the signal came: so many
// repetitions fewer than it has left now.
func (b *breakpoints) repeat(t *thread, x *broken, regs *ptrace.Registers, length int) (move, error) {
	p := x.place
	p.rest = p.pc + uint64(length)
	if err := b.expose(p.rest); err != nil {
		return move{}, err
	}
	part := *regs
	part.Rcx -= p.registers[contextRCX]
	if err := ptrace.SetRegisters(t.tid, &part); err != nil {
		return move{}, err
	}
	return move{}, x.set(t.tid)
}

// rested handles a thread after the instruction has done these repetitions. The thread is moved
// back to it with the others left to do.
func (b *breakpoints) rested(t *thread, x *broken, regs *ptrace.Registers) (move, error) {
	p := x.place
	p.rest = 0
	back := *regs
	back.Rcx += p.registers[contextRCX]
	ended := regs.Rcx != 0 // scas or cmps found what ends it
	if !ended {
		back.Rip = p.pc
	}
	if err := ptrace.SetRegisters(t.tid, &back); err != nil {
		return move{}, err
	}
	if err := x.set(t.tid); err != nil {
		return move{}, err
	}
	if ended || !p.equal(&back, []int{contextFlags}) {
		return move{}, nil
	}
	if same, err := p.matches(t); err != nil || !same {
		return move{}, err
	}
	*regs = back
	return b.arrive(t, x, regs)
}
