package step

import (
	"encoding/binary"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/replay/ptrace"
	"diagnose/replay/recorder/sites"
	"diagnose/replay/tracee"
)

// Stepping executes a part of a replay one instruction at a time and reports the memory that it
// accesses. An instruction takes some 10 us. The recording library's own code is left out, and so
// are signal handlers that interrupt a thread while it leaves the library.
type Stepping struct {
	// Windows are the parts, by thread.
	Windows map[uint32]StepWindow
	// Most bounds the instructions that are stepped, of all threads; at the bound the replay ends,
	// as at a Moment. Share bounds those of a thread between two events; 0: no bound. The thread
	// executes the rest at full speed, and Result.StepsCut is set.
	Most, Share uint64
	// Skip is how many of the first instructions are not passed to Each.
	Skip uint64
	// On, if set, is called for each access, in order, and for each return from a function of the
	// recording library.
	On func(*Stepped)
	// Calls, if not empty, are functions of the recording library. Then nothing is stepped, and On
	// is called only for returns from those functions: from the first of them, as many as there
	// are free debug registers.
	Calls []evidence.Addr
	// Each, if set, is called before each instruction. Then no loop is left.
	Each func(*Executed)
	// Ahead, with Each and without On: what can be is executed in copies of the code (package translate), a thousand times
	// as fast.
	Ahead bool
}

// Executed is an instruction that a thread is about to execute.
type Executed struct {
	Thread  uint32
	Ordinal uint64 // of the thread's last event
	PC      uint64
	// General are the general registers, by x86.Reg; Flags is the flags register, FSBase and GSBase
	// are the bases of these segments.
	General               [16]uint64
	Flags, FSBase, GSBase uint64
	// Ahead: it was executed in a copy, and Flags is not known. Of a conditional move, Holds is whether its condition was true.
	Ahead, Holds bool
	// Again: the report before this one of the thread did not come true, because it was preempted.
	Again bool
	// Called is the function of the recording library that has just returned; 0: none, or it is
	// not known.
	Called uint64
	// Inst is the instruction; nil: its bytes are none.
	Inst *x86.Inst
	// Stub: PC is in the place where atomic instructions are executed. At is the program's address of the instruction; 0: it
	// is one of the engine's around it.
	Stub bool
	At   uint64
}

// StepWindow is the part of a thread from after its event From to the event that follows To.
type StepWindow struct {
	From, To uint64
	// PC and Count say where after the event From it begins: at the Count-th arrival. PC 0: at the event.
	PC    evidence.Addr
	Count uint64
}

// Stepped is an access, or a return from a function of the recording library.
type Stepped struct {
	Thread  uint32
	Ordinal uint64 // of the thread's last event
	// Position is the number of events of all threads done.
	Position uint64
	// PC is the instruction's address. Count is the number of this arrival there since the
	// thread's last event or its last preemption at an instruction; 0: the thread was preempted
	// there. The third field counts such preemptions since the event.
	PC     evidence.Addr
	Count  uint64
	Behind int
	// Next is the thread's pc after the instruction, reached for the NextCount-th time; 0: it
	// entered the library.
	Next      evidence.Addr
	NextCount uint64
	// Addr, Size and Kind describe an access. Called is the function that has returned, and First
	// its first argument; then PC is the return address.
	Addr   evidence.Addr
	Size   uint64
	Kind   evidence.AccessKind
	Called evidence.Addr
	First  uint64
}

// state is the state of a thread that is stepped.
type state struct {
	to       uint64
	ordinal  uint64
	position uint64
	behind   int
	done     uint64 // instructions since the event
	counts   map[uint64]uint64
	last     uint64 // pc
	pending  []Stepped
	// running: the thread runs at full speed, in the library or in a loop, and is stepped again at
	// the breaks.
	running  bool
	breaks   []uint64
	called   uint64 // function of the library, if it is known
	first    uint64 // its first argument
	within   bool   // in the library, and stepped until it leaves it
	inner    uint64 // pc of the last instruction that was stepped there
	started  bool   // the thread's function has been looked for
	loop     loop
	low, top uint64 // of its stack
}

// lost replaces the count of arrivals at an instruction of a loop that was not stepped.
const lost = 1 << 63

func (s *state) count(pc uint64) uint64 {
	if n := s.counts[pc]; n < lost {
		return n
	}
	return 0
}

// BreakSetter sets the breakpoints at which a thread is stepped again.
type BreakSetter interface {
	// ResumeAt also stops the thread at the pcs, and no longer at those of earlier calls.
	// freeRegisters returns how many pcs that can be.
	ResumeAt(t *tracee.Thread, pcs ...uint64) error
	FreeRegisters(t *tracee.Thread) int
}

// Stepper steps the threads of a replay.
type Stepper struct {
	*Stepping
	process *tracee.Process
	breaks  BreakSetter
	// threads are those that are stepped.
	threads map[*tracee.Thread]*state
	left    uint64
	// Cut: a thread has used its share between two events.
	Cut          bool
	instructions map[uint64]*x86.Inst
	copies       copies
	stubs        sites.AtomicStubs
	// maps are the mappings when mapsAt events were done.
	maps   tracee.Mappings
	mapsAt uint64
}

// New returns a Stepper that steps nothing yet.
func New(asked *Stepping, p *tracee.Process, b BreakSetter) *Stepper {
	return &Stepper{Stepping: asked, process: p, breaks: b, threads: map[*tracee.Thread]*state{}, left: asked.Most, instructions: map[uint64]*x86.Inst{}}
}

// Begins returns where the threads begin to be stepped.
func (st *Stepper) Begins() map[evidence.Moment]*StepWindow {
	begins := map[evidence.Moment]*StepWindow{}
	for thread, w := range st.Windows {
		// At each event, because the step before may not have been stepped to its end.
		for ordinal := w.From; ordinal <= w.To && (ordinal == w.From || st.Share > 0); ordinal++ {
			begins[evidence.Moment{Thread: thread, Ordinal: ordinal, PC: w.PC, Count: w.Count}] = &w
		}
	}
	return begins
}

// BeginWindow starts stepping a thread. It is in the engine and has done the event before its
// window, or it is at the window's pc.
func (st *Stepper) BeginWindow(t *tracee.Thread, w *StepWindow) error {
	if st.threads[t] != nil {
		return nil
	}
	regs, err := st.process.ProgramRegisters(t)
	if err != nil {
		return err
	}
	r, err := st.process.ReadThread(t.Index)
	if err != nil {
		return err
	}
	st.threads[t] = &state{to: w.To, low: tracee.StackLow(r), top: r.StackHigh}
	if w.PC == 0 && r.Inside != 0 {
		return st.leaveEngine(t)
	}
	if w.PC == 0 {
		return st.runUpTo(t, regs.Rip)
	}
	if err := st.noteEvent(t); err != nil {
		return err
	}
	st.observe(t, &regs, true)
	st.tell(t, &regs, false, 0)
	return nil
}

// noteEvent updates the state of a thread that leaves the library.
func (st *Stepper) noteEvent(t *tracee.Thread) error {
	s := st.threads[t]
	r, err := st.process.ReadThread(t.Index)
	if err != nil {
		return err
	}
	control, err := st.process.ReadControl()
	if err != nil {
		return err
	}
	if s.position != control.Consumed && st.Each != nil {
		if err := st.stubs.Read(st.process.Memory, st.process.Control); err != nil {
			return err
		}
	}
	s.position = control.Consumed
	if r.Ordinal == s.ordinal {
		return nil
	}
	s.ordinal, s.behind, s.done, s.counts = r.Ordinal, 0, 0, map[uint64]uint64{}
	if r.Ordinal > s.to {
		delete(st.threads, t)
	}
	return nil
}

// Steps reports whether the thread is resumed by one instruction. A nil stepper steps none.
func (st *Stepper) Steps(t *tracee.Thread) bool {
	if st == nil || t.Final != nil {
		return false
	}
	s := st.threads[t]
	return s != nil && !s.running
}

// StepsAgainFrom reports whether the thread is stepped again from pc.
func (st *Stepper) StepsAgainFrom(t *tracee.Thread, pc uint64) bool {
	if st == nil {
		return false
	}
	s := st.threads[t]
	return s != nil && slices.Contains(s.breaks, pc)
}

// runUpTo runs the thread at full speed up to one of the pcs. Without pcs it is not stepped again
// until something else stops it.
func (st *Stepper) runUpTo(t *tracee.Thread, pcs ...uint64) error {
	st.threads[t].running, st.threads[t].breaks = true, pcs
	return st.breaks.ResumeAt(t, pcs...)
}

// stepAgain makes the thread stepped again.
func (st *Stepper) stepAgain(t *tracee.Thread) error {
	st.threads[t].running, st.threads[t].breaks = false, nil
	return st.breaks.ResumeAt(t)
}

// Stepped handles a thread that has executed an instruction and continues. spent: Most is reached,
// and the replay is over.
func (st *Stepper) Stepped(t *tracee.Thread, regs *ptrace.Registers) (spent bool, err error) {
	for {
		if spent, err = st.stepped(t, regs); spent || err != nil || !st.Steps(t) {
			return spent, err
		}
		ran, spent, err := st.runAhead(t, regs)
		if spent || err != nil || !ran {
			return spent, err
		}
	}
}

// stepped handles a thread at the next instruction that it executes.
func (st *Stepper) stepped(t *tracee.Thread, regs *ptrace.Registers) (spent bool, err error) {
	if st.left--; st.left == 0 {
		return true, nil
	}
	if st.threads[t].done++; st.threads[t].done == st.Share {
		return false, st.leaveRest(t)
	}
	inside, err := st.process.InLibrary(regs.Rip)
	if err != nil {
		return false, err
	}
	st.threads[t].within = st.threads[t].within && inside
	if inside {
		return false, st.enterLibrary(t, regs)
	}
	st.observe(t, regs, true)
	st.tell(t, regs, false, 0)
	if st.Each != nil {
		return false, nil
	}
	return false, st.leaveLoop(t)
}

// Done is the number of instructions that were stepped.
func (st *Stepper) Done() uint64 { return st.Most - st.left }

// skipped is how many of the next instructions are not passed to Each.
func (st *Stepper) skipped() uint64 {
	done := st.Done()
	return max(st.Skip, done) - done
}

// tell reports the next instruction to Each.
func (st *Stepper) tell(t *tracee.Thread, regs *ptrace.Registers, again bool, called uint64) {
	if st.Each == nil || st.skipped() > 0 {
		return
	}
	s := st.threads[t]
	x := Executed{Thread: t.Index, Ordinal: s.ordinal, PC: regs.Rip, General: tracee.GeneralRegisters(regs),
		Flags: regs.Eflags, FSBase: regs.Fs_base, GSBase: regs.Gs_base, Again: again, Called: called, Inst: st.instruction(regs.Rip)}
	st.each(&x)
}

// each reports an instruction with its place in the program.
func (st *Stepper) each(x *Executed) {
	if x.Stub, x.At = st.stubs.Has(x.PC), 0; x.Stub {
		x.At = st.stubs.ProgramAddress(x.PC)
	}
	st.Each(x)
}

// leaveRest runs a thread at full speed through the rest of a long step.
func (st *Stepper) leaveRest(t *tracee.Thread) error {
	st.Cut = true
	st.deliver(st.threads[t], 0, 0)
	delete(st.threads, t)
	return st.breaks.ResumeAt(t)
}

// leaveLoop runs a thread at full speed through a loop whose iterations have become the same.
func (st *Stepper) leaveLoop(t *tracee.Thread) error {
	s := st.threads[t]
	inst := st.instruction(s.last)
	exits, ready := s.loop.next(s.last, inst, st.instruction, func() []Stepped { return s.pending }, func(a evidence.Addr) bool {
		return uint64(a) < s.low || uint64(a) >= s.top
	})
	if !ready || st.breaks.FreeRegisters(t) < len(exits) {
		return nil
	}
	for pc := range s.loop.body {
		s.counts[pc] = lost
	}
	st.deliver(s, 0, 0)
	s.loop = loop{}
	return st.runUpTo(t, exits...)
}

// enterLibrary runs the thread at full speed to where it returns. In the entries of the engine
// that address is known as soon as the frame is there; elsewhere the thread is at a function's
// first instruction, or within a function that it did not enter by a call.
func (st *Stepper) enterLibrary(t *tracee.Thread, regs *ptrace.Registers) error {
	s := st.threads[t]
	st.deliver(s, 0, 0)
	s.loop = loop{}
	entries, err := st.process.Entries()
	if err != nil {
		return err
	}
	if entries.Has(regs.Rip) {
		return st.leaveEngine(t)
	}
	from := s.inner
	s.inner = regs.Rip
	if s.within && !st.calls(from) {
		return nil
	}
	var word [8]byte
	if _, err := st.process.Memory.ReadAt(word[:], int64(regs.Rsp)); err != nil {
		return err
	}
	back := []uint64{binary.LittleEndian.Uint64(word[:])}
	if !s.within {
		if maps, err := st.mappings(s); err != nil {
			return err
		} else if to, returned := st.handlerReturn(s, regs); returned && maps.Executable(to) && !maps.Executable(back[0]) {
			return st.runUpTo(t, to)
		} else if !maps.Executable(back[0]) {
			s.within = true // it was not called, and is stepped to where it is left
			return nil
		}
		s.called, s.first = regs.Rip, regs.Rdi
	}
	if r, err := st.process.ReadThread(t.Index); err == nil && r.Start != 0 && !s.started {
		back = append(back, r.Start) // the thread's own function, which the library calls
		s.started = true
	}
	return st.runUpTo(t, back...)
}

// handlerReturn returns where a thread continues that has returned from a signal's handler into the library: there the
// context, which says it, is at the stack pointer (struct ucontext of sys/ucontext.h).
func (st *Stepper) handlerReturn(s *state, regs *ptrace.Registers) (to uint64, returned bool) {
	const interrupted = 168
	inst := st.instruction(s.last)
	var word [8]byte
	if inst == nil || inst.Flow != x86.FlowReturn {
		return 0, false
	}
	_, err := st.process.Memory.ReadAt(word[:], int64(regs.Rsp+interrupted))
	return binary.LittleEndian.Uint64(word[:]), err == nil
}

// mappings are those of the process, which only events change.
func (st *Stepper) mappings(s *state) (tracee.Mappings, error) {
	if st.maps == nil || st.mapsAt != s.position {
		maps, err := tracee.ReadMaps(st.process.PID)
		if err != nil {
			return nil, err
		}
		st.maps, st.mapsAt = maps, s.position
	}
	return st.maps, nil
}

// leaveEngine runs a thread that is in the engine's entries at full speed to where it leaves them.
func (st *Stepper) leaveEngine(t *tracee.Thread) error {
	r, err := st.process.ReadThread(t.Index)
	if err != nil || r.Inside == 0 {
		return err
	}
	f, err := tracee.ReadStruct[agent.RawFrame](st.process.Memory, r.Inside)
	if err != nil {
		return err
	}
	return st.runUpTo(t, st.continuesAt(f))
}

// continuesAt returns where a thread leaves the engine. From the point of an instruction that is executed elsewhere it goes
// there: the address is in the struct dg_point_stub.
func (st *Stepper) continuesAt(f *agent.RawFrame) uint64 {
	const goAt = 8 // POINT_GO of engine/entry.S
	var word [8]byte
	if f.Kind != agent.EntryPoint || f.AgainRAX == 0 {
		return f.RIP
	}
	if _, err := st.process.Memory.ReadAt(word[:], int64(f.AgainRAX+goAt)); err != nil {
		return f.RIP
	}
	return binary.LittleEndian.Uint64(word[:])
}

// calls reports whether the instruction at a pc is a call.
func (st *Stepper) calls(pc uint64) bool {
	inst := st.instruction(pc)
	return inst != nil && inst.Flow == x86.FlowCall
}

// CameBack handles a thread that has reached an address where it is to be stepped again.
func (st *Stepper) CameBack(t *tracee.Thread, regs *ptrace.Registers) error {
	if len(st.Calls) > 0 {
		return st.cameToCall(t, regs)
	}
	s := st.threads[t]
	called := s.called
	s.called = 0
	if err := st.stepAgain(t); err != nil {
		return err
	}
	ordinal := s.ordinal
	if err := st.noteEvent(t); err != nil || st.threads[t] == nil {
		return err
	}
	if inside, err := st.process.InLibrary(regs.Rip); err != nil {
		return err
	} else if inside { // from the engine into a function that called it, or from another one that it called
		s.within, s.inner = true, regs.Rip
		return nil
	}
	s.within = false
	st.observe(t, regs, true)
	st.tell(t, regs, false, called)
	if called != 0 && s.ordinal == ordinal {
		st.report(&Stepped{Thread: t.Index, Ordinal: s.ordinal, Position: s.position, PC: evidence.Addr(regs.Rip),
			Count: s.count(regs.Rip), Behind: s.behind, Called: evidence.Addr(called), First: s.first})
	}
	return nil
}

// observe notes the accesses of the next instruction.
func (st *Stepper) observe(t *tracee.Thread, regs *ptrace.Registers, arrives bool) {
	s := st.threads[t]
	inst := st.instruction(regs.Rip)
	again := inst != nil && regs.Rip == s.last && repeatsItself(inst)
	if arrives && !again {
		s.counts[regs.Rip]++
	}
	st.deliver(s, regs.Rip, s.count(regs.Rip))
	s.last = regs.Rip
	if inst == nil {
		return
	}
	for i := range inst.Operands {
		o := &inst.Operands[i]
		if !o.IsMemory || o.Access == "" || o.Size == 0 {
			continue
		}
		addr, known := tracee.OperandAddress(o, regs)
		if !known {
			continue
		}
		s.pending = append(s.pending, Stepped{Thread: t.Index, Ordinal: s.ordinal, Position: s.position, PC: evidence.Addr(regs.Rip),
			Count: s.count(regs.Rip), Behind: s.behind, Addr: evidence.Addr(addr), Size: uint64(o.Size), Kind: o.Access})
	}
}

// deliver reports the accesses of the previous instruction.
func (st *Stepper) deliver(s *state, next, count uint64) {
	for i := range s.pending {
		x := &s.pending[i]
		x.Next, x.NextCount = evidence.Addr(next), count
		st.report(x)
	}
	s.pending = s.pending[:0]
}

func (st *Stepper) report(x *Stepped) {
	if st.On != nil {
		st.On(x)
	}
}

// Parked drops the accesses of a preempted thread: it executes the instruction later.
func (st *Stepper) Parked(t *tracee.Thread) {
	if st == nil {
		return
	}
	if s := st.threads[t]; s != nil {
		s.pending = s.pending[:0]
	}
}

// Unparked handles a thread that continues after a preemption.
func (st *Stepper) Unparked(t *tracee.Thread, regs *ptrace.Registers) error {
	if st == nil || st.threads[t] == nil {
		return nil
	}
	if err := st.noteEvent(t); err != nil || st.threads[t] == nil {
		return err
	}
	st.threads[t].behind++
	st.threads[t].counts, st.threads[t].loop = map[uint64]uint64{}, loop{}
	if len(st.Calls) > 0 {
		st.threads[t].called = 0
		return st.awaitCalls(t)
	}
	if err := st.stepAgain(t); err != nil {
		return err
	}
	st.observe(t, regs, false)
	st.tell(t, regs, true, 0)
	return nil
}

// Finish delivers the accesses that threads were about to make at the end. An access that fails is
// among them.
func (st *Stepper) Finish() {
	for _, t := range st.process.SortedThreads() {
		if st.threads[t] != nil {
			st.deliver(st.threads[t], 0, 0)
		}
	}
}

func (st *Stepper) instruction(pc uint64) *x86.Inst {
	inst, known := st.instructions[pc]
	if !known {
		inst = st.process.Instruction(pc)
		st.instructions[pc] = inst
	}
	return inst
}

func repeatsItself(inst *x86.Inst) bool {
	for i := range inst.Operands {
		if inst.Operands[i].Repeated {
			return true
		}
	}
	return false
}
