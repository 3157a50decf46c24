package tracepoint

import (
	"encoding/binary"
	"errors"
	"slices"

	"diagnose/agent"
	"diagnose/replay/inline"
	"diagnose/replay/patch"
	"diagnose/replay/ptrace"
)

// A thread that arrives at an instruction without a rule asks the tool, and waits in a loop for the answer. That takes no stop, but a
// second processor. Only the thread with the right to run asks, so there is one question at a time. Where no answer begins in time, the
// thread takes its question back, and stops.

// The states of a question. The thread asks, takes back and ends it; the tool takes it and answers.
const (
	askNone = iota
	askAsked
	askTaken
	askAnswered
)

// waitRounds bounds the rounds, of some 40 ns each, that a thread waits until the tool takes its question.
const waitRounds = 1000

// Offsets in a thread's own memory.
const (
	ownSelf   = ownAsked // the address of that memory
	ownFS     = ownAsked + word
	ownEvents = ownFS + word     // the number of events that all threads had done
	ownOthers = ownEvents + word // the registers of others
)

// others are the registers that are not in the thread's own memory already, by hardware number.
var others = []byte{inline.HardBX, inline.HardSP, 5, inline.HardSI, inline.HardDI, 8, 9, 10, 11, 12, 13, 14, 15}

// Question is an arrival of a thread that waits for an answer.
type Question struct {
	// Registers are the program's.
	Registers ptrace.Registers
	// Thread is the thread, TID the kernel's id of it, Ordinal its last event, and Count the arrivals there since that event. Position is
	// the number of events that all threads had done.
	Thread                   uint32
	TID                      int
	Ordinal, Count, Position uint64
	// Vector are the vector registers, as FXSAVE stores them.
	Vector []byte

	moved uint64 // where the copy of the instruction is
}

// asking appends the code of an instruction at which threads ask.
func (l *processLog) asking(w *writer) error {
	w.faults()
	w.Write([]byte{0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0}) // mov %fs:0, %rax: the thread pointer
	w.OwnMemory(inline.OpStore, inline.HardAX, ownFS)
	w.Constant(inline.HardDX, agent.EngineControl+consumedOffset)
	w.AtBase(inline.OpLoad, inline.HardDX, inline.HardDX, 0)
	w.OwnMemory(inline.OpStore, inline.HardDX, ownEvents)
	w.Constant(inline.HardCX, l.base)
	w.ToLabel("out", 0x48, 0x8d, 0x15) // lea out(%rip), %rdx
	w.OwnMemory(inline.OpStore, inline.HardDX, ownReturn)
	return w.Jump(w.Common["ask"])
}

// ask appends the code that they share. It jumps to ownReturn, or to ownSlow if there was no answer.
func (l *processLog) ask(a *inline.Assembler) {
	state := func(opcode ...byte) {
		a.Write(opcode)
		a.Word(blockAsk)
	}
	a.Write([]byte{0x83, 0xb9}) // cmpl $0, blockAnswers(%rcx)
	a.Word(blockAnswers)
	a.WriteByte(0)
	a.ToLabel("stops", 0x0f, 0x84) // je
	for i, r := range others {
		a.Write([]byte{0x65, 0x48 | r>>3<<2, inline.OpStore, r&7<<3 | 4, 0x25})
		a.Word(uint64(ownOthers + word*i))
	}
	a.Write([]byte{0x65, 0x48, 0x0f, 0xae, 0x04, 0x25}) // fxsave64 %gs:ownVector
	a.Word(ownVector)
	a.OwnMemory(inline.OpLoad, inline.HardAX, ownSelf)
	a.AtBase(inline.OpStore, inline.HardAX, inline.HardCX, blockAsker)
	a.Write([]byte{0xba}) // mov $waitRounds, %edx
	a.Word(waitRounds)
	state(0xc7, 0x81) // movl $askAsked, blockAsk(%rcx)
	a.Word(askAsked)
	a.Label("wait")
	state(0x8b, 0x81)                                 // mov blockAsk(%rcx), %eax
	a.Write([]byte{0x83, 0xf8, askAnswered})          // cmp $askAnswered, %eax
	a.ToLabel("done", 0x0f, 0x84)                     // je
	a.Write([]byte{0xf3, 0x90, 0x83, 0xf8, askAsked}) // pause; cmp $askAsked, %eax
	a.ToLabel("wait", 0x0f, 0x85)                     // jne: taken, so there will be an answer
	a.Write([]byte{0xff, 0xca})                       // dec %edx
	a.ToLabel("wait", 0x0f, 0x85)                     // jnz
	state(0xf0, 0x0f, 0xb1, 0x91)                     // lock cmpxchg %edx, blockAsk(%rcx): askNone
	a.ToLabel("wait", 0x0f, 0x85)                     // jne
	a.Label("stops")
	a.Write([]byte{0x65, 0xff, 0x24, 0x25}) // jmp *%gs:ownSlow
	a.Word(ownSlow)
	a.Label("done")
	state(0xc7, 0x81) // movl $askNone, blockAsk(%rcx)
	a.Word(askNone)
	a.Write([]byte{0x65, 0xff, 0x24, 0x25}) // jmp *%gs:ownReturn
	a.Word(ownReturn)
}

// question takes a question; nil: there is none.
func (l *processLog) question() (*Question, error) {
	if !l.word(blockAsk).CompareAndSwap(askAsked, askTaken) {
		return nil, nil
	}
	damaged := errors.New("replay: a question of the process is damaged")
	at := l.word(blockAsker).Load() - l.base
	if at < blockOwn || at > uint64(l.logStart()-l.ownBytes) {
		return nil, damaged
	}
	own := l.block[at : at+uint64(l.ownBytes)]
	number := func(at int) uint64 { return binary.LittleEndian.Uint64(own[at:]) }
	c := l.codeAt(number(ownReturn))
	if c == nil || !c.rule.asks {
		return nil, damaged
	}
	slot := l.slot(c.rule.number)
	q := &Question{Thread: uint32(number(ownIndex)), TID: int(uint32(number(ownTID))), Ordinal: number(slot + slotOrdinal), Count: number(slot + slotCount),
		Position: number(ownEvents), Vector: own[ownVector : ownVector+ptrace.FXSaveBytes], moved: c.moved}
	q.Registers = registersOf(own)
	q.Registers.Rip = uint64(c.rule.pc)
	return q, nil
}

// registersOf returns the program's registers of a thread that asks. Segments and flags of the system are those of all programs (System V
// ABI for x86-64, 3.2.1).
func registersOf(own []byte) ptrace.Registers {
	number := func(at int) uint64 { return binary.LittleEndian.Uint64(own[at:]) }
	other := func(i int) uint64 { return number(ownOthers + word*i) }
	const userCode, userStack, always = 0x33, 0x2b, 1<<9 | 1<<1
	return ptrace.Registers{Rax: number(ownAX), Rcx: number(ownCX), Rdx: number(ownDX), Rbx: other(0), Rsp: other(1), Rbp: other(2), Rsi: other(3),
		Rdi: other(4), R8: other(5), R9: other(6), R10: other(7), R11: other(8), R12: other(9), R13: other(10), R14: other(11), R15: other(12),
		Eflags: always | patch.FlagsOf(number(ownFlags)&0xffff), Fs_base: number(ownFS), Orig_rax: ^uint64(0), Cs: userCode, Ss: userStack}
}

// Asks reports whether threads ask at all instructions. Else stops are faster where the tool runs on the process's processor.
func (x *Tracepoints) Asks() bool {
	return x != nil && x.log.block != nil && !x.in.HasTrapped() && slices.ContainsFunc(x.log.codes, func(c *ruleCode) bool { return c.rule.asks })
}

// SetAnswers says whether the tool looks for questions. Where it does not, threads stop.
func (x *Tracepoints) SetAnswers(answers bool) {
	n := uint64(0)
	if answers {
		n = 1
	}
	x.log.word(blockAnswers).Store(n)
}

// HasQuestion reports whether a thread asks.
func (x *Tracepoints) HasQuestion() bool { return x.log.word(blockAsk).Load() == askAsked }

// Answer answers the question of a thread, unless that has taken it back.
func (x *Tracepoints) Answer() error {
	q, err := x.log.question()
	if q == nil || err != nil {
		return err
	}
	if err := x.Drain(); err != nil || x.replay.Over() {
		return err
	}
	if err := x.replay.Asked(q); err != nil || x.replay.Over() {
		return err
	}
	x.log.makeRoom(x.replay)
	x.log.word(blockAsk).Store(askAnswered)
	return nil
}

// Settle moves a stopped thread from where it waits for an answer to the instruction.
func (q *Question) Settle() error {
	regs, err := ptrace.GetRegisters(q.TID)
	if err != nil {
		return err
	}
	own := regs.Gs_base
	regs = q.Registers
	regs.Rip, regs.Gs_base = q.moved, own
	return ptrace.SetRegisters(q.TID, &regs)
}
