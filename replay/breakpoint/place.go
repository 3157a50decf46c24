package breakpoint

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
	"diagnose/replay/patch"
	"diagnose/replay/ptrace"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/recorded"
	"diagnose/replay/tracee"
)

// place is a pc with the state that identifies it.
type place struct {
	pc        uint64
	registers [18]uint64 // struct dg_signal_state
	flags     uint64     // the bits of the last of them that are compared
	// unread: the flags of results are not compared at pc; results are the recorded ones.
	unread  bool
	results uint64
	// matches makes the comparisons that cost more than registers.
	matches func(t *tracee.Thread) (bool, error)
	// preempts: it is where a turn ended. Else it is a signal's, or with signal 0 the thread's end.
	preempts bool
	signal   int
	info     ptrace.Siginfo
	probe    *probe // nil: a debug register
	// retry: a probe was not possible, perhaps because of where the thread continued.
	retry bool
	// generated: the program wrote the code at pc, or has yet to write it.
	generated bool
	known     []tracee.Words
	// rest: a repeating instruction is executed until the place's count is left, and traps after
	// it, at this address.
	rest uint64
}

// signalPlace returns the place of a signal that arrived between two events.
func signalPlace(m io.ReaderAt, e *eventlog.Event) (*place, error) {
	p := &place{signal: int(e.Object)}
	if e.Kind != eventlog.KindSignal || len(e.Args) < 9 || len(e.Payloads) < 3 || len(e.Payloads[0].Data) != len(p.info) {
		return nil, fmt.Errorf("replay: event of kind %v is no signal with a state", e.Kind)
	}
	copy(p.info[:], e.Payloads[0].Data)
	want := digests{registers: e.Args[2], stack: e.Args[3], data: e.Args[4]}
	if err := p.identify(m, e.Args[1], want, e.Payloads[1:]); err != nil {
		return nil, fmt.Errorf("replay: signal %d: %w", e.Object, err)
	}
	return p, nil
}

// turnPlace returns the place where a thread's turn ended between two events.
func turnPlace(m io.ReaderAt, e *eventlog.Event) (*place, error) {
	if e.Kind != eventlog.KindPoint || len(e.Args) < 7 || e.Args[0] != agent.PointState || len(e.Payloads) < 2 {
		return nil, fmt.Errorf("replay: event of kind %v is no turn's end with a state", e.Kind)
	}
	p := &place{preempts: true}
	want := digests{registers: e.Args[2], stack: e.Args[3], data: e.Args[4], vectors: &e.Args[6]}
	if err := p.identify(m, e.Object, want, e.Payloads); err != nil {
		return nil, fmt.Errorf("replay: the end of a turn: %w", err)
	}
	return p, nil
}

// identify makes pc the place, where the state has the digests. The payloads are the registers, the
// ranges of memory, and words of these.
func (p *place) identify(m io.ReaderAt, pc uint64, want digests, payloads []eventlog.Payload) error {
	state, ranges := payloads[0], payloads[1]
	var s agent.RawSignalState
	if state.Kind != eventlog.PayloadRegisters || len(state.Data) != binary.Size(s) ||
		ranges.Kind != eventlog.PayloadRanges || len(ranges.Data)%16 != 0 || len(ranges.Data) == 0 {
		return errors.New("it has no state in the log")
	}
	if _, err := binary.Decode(state.Data, binary.LittleEndian, &s); err != nil {
		return err
	}
	p.pc, p.registers, p.flags = pc, s.Registers, s.Flags
	parts := make([]agent.RawRange, len(ranges.Data)/16)
	if _, err := binary.Decode(ranges.Data, binary.LittleEndian, parts); err != nil {
		return err
	}
	left := uint64(80 << 20) // the recorder has at most 64 MiB (DG_PLACE_DIGESTED), and stacks
	for _, r := range parts {
		if r.Length > left {
			return fmt.Errorf("its digests are of %d bytes and more", r.Length)
		}
		left -= r.Length
	}
	for _, w := range payloads[2:] {
		if w.Kind == eventlog.PayloadWords {
			p.known = append(p.known, tracee.Words{Addr: uint64(w.Addr), Data: w.Data})
		}
	}
	general := digest(state.Data[:8*len(s.Registers)], 0)
	p.matches = func(t *tracee.Thread) (bool, error) { return want.match(t.TID, m, general, parts) }
	return nil
}

// digests are of the state of an interrupted thread. With vectors, that of all registers but the general ones,
// registers is of these alone; nil: registers is of xmm0 to xmm15, too.
type digests struct {
	registers, stack, data uint64
	vectors                *uint64
}

// match compares in the order of cost. general is the digest of the general registers, which are
// known to be equal.
func (d digests) match(tid int, m io.ReaderAt, general uint64, ranges []agent.RawRange) (bool, error) {
	if same, err := d.matchVectors(tid, general); err != nil || !same {
		return false, err
	}
	read := func(r agent.RawRange, seed uint64) (uint64, error) {
		p := make([]byte, r.Length)
		_, err := m.ReadAt(p, int64(r.Address))
		return digest(p, seed), err
	}
	// Memory that is not mapped (yet) does not match.
	stack, err := read(ranges[0], 0)
	if err != nil || stack != d.stack {
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

func (d digests) matchVectors(tid int, general uint64) (bool, error) {
	if d.vectors != nil {
		vectors, err := ptrace.VectorDigest(tid)
		return vectors == *d.vectors, err
	}
	floating, err := ptrace.GetRegset(tid, ptrace.RegsetFP)
	if err != nil {
		return false, err
	}
	const xmm, size = 160, 256 // struct user_fpregs_struct
	if len(floating) < xmm+size {
		return false, fmt.Errorf("replay: %d bytes of vector registers", len(floating))
	}
	return digest(floating[xmm:xmm+size], general) == d.registers, nil
}

// contextOrder is the order of the registers in struct sigcontext, without rflags.
var contextOrder = []image.Register{image.R8, image.R9, image.R10, image.R11, image.R12, image.R13, image.R14, image.R15,
	image.RDI, image.RSI, image.RBP, image.RBX, image.RDX, image.RAX, image.RCX, image.RSP, image.RIP}

// finalPlace returns the place where the core has a thread; nil if the core lacks a register.
func finalPlace(live *tracee.Process, core *image.Process, end *recorded.Thread) *place {
	p := &place{flags: tracee.StatusFlags}
	registers, flags := end.Registers, end.Registers.Flags
	if end.Preempted() {
		program := end.Program()
		registers, flags = *tracee.ImageRegisters(&program), program.Eflags
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
	low := p.registers[15] - tracee.RedZone
	want := make([]byte, stackCompared)
	// Other threads write to the control block, which is at the stack's end.
	if end := end.Raw.ThreadPointer; end > low && end-low < stackCompared {
		want = want[:end-low]
	}
	n, _ := core.ReadMemory(evidence.Addr(low), want)
	want = want[:n]
	p.known = []tracee.Words{{Addr: low, Data: want}}
	p.matches = func(t *tracee.Thread) (bool, error) {
		// Loops that take a lock pass here with equal registers and stack.
		if r, err := live.ReadThread(t.Index); err != nil {
			return false, err
		} else if r.Relocked() != end.Raw.Relocked() {
			return false, nil
		}
		have := make([]byte, len(want))
		if _, err := live.Memory.ReadAt(have, int64(low)); err != nil {
			return false, nil
		}
		return bytes.Equal(want, have), nil
	}
	return p
}

// Positions in struct dg_signal_state.
const (
	contextRDI   = 8
	contextRSI   = 9
	contextRCX   = 14
	contextFlags = 17
)

// repeated are the registers that a repeating instruction changes.
var repeated = []int{contextRDI, contextRSI, contextRCX, contextFlags}

// equal compares registers, except for some.
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

// repeatedLength returns the length of the string instruction with a repeat prefix at pc; 0 if
// there is none. Such an instruction is interrupted between its repetitions, but a breakpoint
// traps only before the first of them.
func repeatedLength(m io.ReaderAt, pc uint64) int {
	var code [15]byte
	if _, err := m.ReadAt(code[:], int64(pc)); err != nil {
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

// ignoreFlags excludes from the comparison the flags that no later code reads. A thread that
// arrives gets the recorded ones.
func (p *place) ignoreFlags(m *tracee.Memory) {
	code := make([]byte, patch.FlagsReach)
	if _, err := m.ReadAt(code, int64(p.pc)); err != nil || !patch.FlagsUnread(code, p.pc) {
		return
	}
	p.results, p.unread = p.registers[contextFlags]&patch.ResultFlags, true
	p.flags &^= patch.ResultFlags
	p.registers[contextFlags] &= p.flags
}
