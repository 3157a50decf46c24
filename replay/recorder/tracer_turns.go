package recorder

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"diagnose/agent"
	"diagnose/internal/siginfo"
	"diagnose/internal/wording"
	"diagnose/replay/ptrace"
	"diagnose/replay/recorder/schedule"
	"diagnose/replay/recorder/sites"
)

// A program's threads take turns in its engine (agent/src/hunt/turns.c). A timer's signal stops the thread
// whose turn is over. The tracer says so to the engine, for the thread's next event, or sends the thread into
// the engine from where it is.

// beginTurns is beginHunt where threads take turns.
func (r *recording) beginTurns(tid int, memory *ptrace.Memory, forked bool) error {
	turns := *r.run.order.Turns
	r.manifest.Turns = &turns
	r.points = sites.Points{Memory: r.memory, Most: mostCode}
	if forked {
		return nil
	}
	r.control.Hunt = agent.EngineHunt
	if err := schedule.MapTurns(&turns, tid, memory); err != nil {
		return err
	}
	return r.addPoints(tid, memory)
}

// mostCode is the size of code that is searched for accesses to variables before the program starts, which takes 0.1 s.
const mostCode = 1 << 20

// noteTurns stores how many turns there were.
func (r *recording) noteTurns() {
	if r.manifest.Turns == nil {
		return
	}
	raw, err := sites.ReadHunt(r.memory)
	if err != nil {
		r.limit("turns", err.Error())
		return
	}
	turns := *r.manifest.Turns
	turns.Ended, turns.Placed, turns.Unsure = raw.Turn, raw.Placed, raw.Misplaced
	if processor := int(raw.Processor); processor >= 0 {
		turns.Processor = &processor
	}
	r.manifest.Turns = &turns
	if turns.Unsure > 0 {
		r.limit("turns", fmt.Sprintf("%s ended at an instruction where not all memory was compared: a replay may find an earlier place that looks the same",
			wording.Count(int(turns.Unsure), "turn")))
	}
}

// isTurnsEnd reports whether a signal is that of the timer of a turn.
func (x *tracee) isTurnsEnd(s syscall.Signal, info *ptrace.Siginfo) bool {
	r := x.process.recording
	return s == agent.TurnSignal && info.Code() == siginfo.Timer && binary.LittleEndian.Uint32(info[24:]) == agent.TurnValue &&
		r != nil && r.manifest.Turns != nil
}

// turnTimedOut handles a thread whose turn's time is up. Of a turn that is to end at an event the time has to be
// up twice.
func (t *tracer) turnTimedOut(x *tracee) error {
	r := x.process.recording
	raw, known := r.engineThread(x)
	holder, err := r.holder()
	if err != nil {
		return err
	}
	if !known || holder != x.index {
		return x.proceed(0) // it is another thread's turn already
	}
	var turn struct{ Over, Exact uint32 }
	p := make([]byte, binary.Size(&turn))
	if _, err := r.memory.ReadAt(p, int64(agent.EngineHunt+uint64(unsafe.Offsetof(agent.RawHunt{}.TurnOver)))); err != nil {
		return err
	}
	if _, err := binary.Decode(p, binary.LittleEndian, &turn); err != nil {
		return err
	}
	at, err := r.standing(x)
	if err != nil {
		return err
	}
	early := turn.Exact == 0 && turn.Over == 0 && x.seeking == 0
	if early || raw.State != agent.RRunning || raw.Raw != 0 || int64(at.regs.Orig_rax) >= 0 || x.delay != nil {
		return x.goOn(&at.regs)
	}
	if found, err := x.seek(&at); err != nil || !found {
		return err
	}
	if at.whereabouts != inProgram {
		return x.goOn(&at.regs)
	}
	if err := r.enterForTurn(x, &raw, &at.regs); err != nil {
		return err
	}
	return x.proceed(0)
}

// vainStop is the last stop of a thread for the end of a turn that could not end there.
type vainStop struct {
	regs    ptrace.Registers
	times   int // that it was there, one after the other
	running time.Duration
}

// mostVain is how many times a thread is found at the same place before it runs for a moment.
const mostVain = 3

// goOn continues a thread whose turn cannot end where it is; the timer comes again. If the tracer takes longer than the timer's period, as
// it may on a busy machine, the thread would be stopped before its next instruction, time and again. So it runs for a moment without the
// timer if it has not moved, each time for longer.
func (x *tracee) goOn(regs *ptrace.Registers) error {
	x.process.recording.turnOver()
	v := &x.vain
	if v.regs != *regs {
		v.regs, v.times = *regs, 0
	}
	if v.times++; v.times < mostVain || x.delay != nil {
		return x.proceed(0)
	}
	if err := x.holdTimer(); err != nil {
		return err
	}
	x.seeking = 0
	return x.runFor(&v.running)
}

// mostSeeking is how many steps a thread makes to an instruction that a replay can replace.
const mostSeeking = 100

// seek makes a thread whose turn is over take a step, if it is in the stub of a point, or if a replay cannot replace the instruction
// that it is at by a jump: it would stop there at each arrival. The timer alone would find a thread at the same few instructions of a
// loop, or always in a stub. found: it is at such an instruction, or there is none nearby.
func (x *tracee) seek(at *standing) (found bool, err error) {
	r, pc := x.process.recording, at.regs.Rip
	if at.whereabouts != inProgram {
		if x.seeking == mostSeeking || !r.points.InStub(pc) {
			return true, nil
		}
		return false, x.stepOn()
	}
	possible, err := sites.CanProbe(r.memory, x.tid, pc)
	if err != nil || possible || x.seeking == mostSeeking {
		return true, err
	}
	const pushf = 0x9c // it would store the trap flag
	var code [1]byte
	if _, err := r.memory.ReadAt(code[:], int64(pc)); err != nil {
		return true, err
	}
	if code[0] == pushf || r.crawls(pc) {
		return true, nil
	}
	return false, x.stepOn()
}

func (x *tracee) stepOn() error {
	if err := x.holdTimer(); err != nil {
		return err
	}
	x.seeking++
	x.stopped = false
	return ptrace.Step(x.tid, 0)
}

// timerBit is the timer's signal in a mask.
const timerBit = 1 << (agent.TurnSignal - 1)

// holdTimer makes a thread block the signal of its turn's timer, which could come before the thread's next instruction.
func (x *tracee) holdTimer() error {
	if x.holding {
		return nil
	}
	mask, err := ptrace.GetSigmask(x.tid)
	if err != nil || mask&timerBit != 0 {
		return err
	}
	x.holding = true
	return ptrace.SetSigmask(x.tid, mask|timerBit)
}

// releaseTimer undoes holdTimer. A thread that has just ended has no mask any more.
func (x *tracee) releaseTimer() {
	if !x.holding {
		return
	}
	x.holding = false
	if mask, err := ptrace.GetSigmask(x.tid); err == nil {
		ptrace.SetSigmask(x.tid, mask&^timerBit)
	}
}

// turnOver lets the turn end at the next event.
func (r *recording) turnOver() {
	at := agent.EngineHunt + uint64(unsafe.Offsetof(agent.RawHunt{}.TurnOver))
	r.memory.WriteAt([]byte{1, 0, 0, 0}, int64(at)) // otherwise the process ends
}

func (r *recording) holder() (uint32, error) {
	var p [4]byte
	_, err := r.memory.ReadAt(p[:], int64(r.controlAt+uint64(unsafe.Offsetof(r.control.Holder))))
	return binary.LittleEndian.Uint32(p[:]), err
}

// enterForTurn makes a stopped thread enter the engine as if it had called dg_turns_here, with
// the program's registers in its frame.
func (r *recording) enterForTurn(x *tracee, raw *agent.RawRThread, regs *ptrace.Registers) error {
	const flags = ptrace.FlagTrap | ptrace.FlagResume
	vectors, err := ptrace.VectorDigest(x.tid)
	if err != nil {
		return err
	}
	frame := agent.RawFrame{RAX: regs.Rax, RBX: regs.Rbx, RCX: regs.Rcx, RDX: regs.Rdx, RSI: regs.Rsi, RDI: regs.Rdi, RBP: regs.Rbp,
		R8: regs.R8, R9: regs.R9, R10: regs.R10, R11: regs.R11, R12: regs.R12, R13: regs.R13, R14: regs.R14, R15: regs.R15,
		RIP: regs.Rip, RSP: regs.Rsp, RFlags: regs.Eflags &^ flags,
		AgainRAX: 1, AgainRSP: regs.Rsp, Kind: agent.EntryPoint} // AgainRAX: it continues where no call did
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, &frame); err != nil {
		return err
	}
	top := raw.EngineSP - uint64(b.Len())
	if _, err := r.memory.WriteAt(b.Bytes(), int64(top)); err != nil {
		return err
	}
	if err := r.memory.SetWord(agent.RThreadAddress(x.index)+uint64(unsafe.Offsetof(raw.Inside)), top); err != nil {
		return err
	}
	in := *regs
	in.Rip, in.Rsp, in.Rdi, in.Rsi = r.control.ParkPC, top&^15-8, agent.ParkedTurn, vectors
	in.Eflags &^= flags
	in.Orig_rax = ^uint64(0)
	return ptrace.SetRegisters(x.tid, &in)
}
