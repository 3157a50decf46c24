package replay

import (
	"encoding/binary"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/replay/ptrace"
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
	Cut         bool
	// On is called for each access, in order, and for each return from a function of
	// the recording library.
	On func(*Stepped)
	// Calls, if not empty, are functions of the recording library. Then nothing is stepped, and On
	// is called only for returns from those functions: from the first of them, as many as there
	// are free debug registers.
	Calls []evidence.Addr
}

// StepWindow is the part of a thread from after its event From to the event that follows To.
type StepWindow struct{ From, To uint64 }

// Stepped is an access, or a return from a function of the recording library.
type Stepped struct {
	Thread  uint32
	Ordinal uint64 // of the thread's event before
	// Position is how many events of all threads were done.
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

// steps is the state of a thread that is stepped.
type steps struct {
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
	within   bool   // in the library, and stepped to where it is left
	started  bool   // the thread's function has been looked for
	loop     loop
	low, top uint64 // of its stack
}

// lost replaces the count of arrivals at an instruction of a loop that was not stepped.
const lost = 1 << 63

func (s *steps) count(pc uint64) uint64 {
	if n := s.counts[pc]; n < lost {
		return n
	}
	return 0
}

// stepper steps the threads of a replay.
type stepper struct {
	*Stepping
	left         uint64
	instructions map[uint64]*x86.Inst
}

// stepHooks makes a hook of where each window begins.
func (c *controller) stepHooks() []Hook {
	if c.opts.Step == nil {
		return nil
	}
	c.stepper = &stepper{Stepping: c.opts.Step, left: c.opts.Step.Most, instructions: map[uint64]*x86.Inst{}}
	var hooks []Hook
	for thread, w := range c.opts.Step.Windows {
		// At each event, for the step before may not have been stepped to its end.
		for ordinal := w.From; ordinal <= w.To && (ordinal == w.From || c.stepper.Share > 0); ordinal++ {
			hooks = append(hooks, Hook{At: evidence.Moment{Thread: thread, Ordinal: ordinal}, step: &w})
		}
	}
	return hooks
}

// beginWindow starts stepping a thread that is in the engine and has done the event before its
// window.
func (c *controller) beginSteps(t *thread, hook Hook) error {
	if t.steps != nil {
		return c.nextHook(t, evidence.Moment{})
	}
	regs, err := c.programRegisters(t)
	if err != nil {
		return err
	}
	r, err := c.rthread(t.index)
	if err != nil {
		return err
	}
	t.steps = &steps{to: hook.step.To, low: stackLow(r), top: r.StackHigh}
	if err := c.runSteps(t, regs.Rip); err != nil {
		return err
	}
	return c.nextHook(t, evidence.Moment{})
}

// stackLow returns the low end of a thread's stack. The first thread's stack grows as far as the
// engine allows (dg_stack_low).
func stackLow(r *agent.RawRThread) uint64 {
	const most = 128 << 20
	if r.StackLow == 0 && r.StackHigh > most {
		return r.StackHigh - most
	}
	return r.StackLow
}

// stepEvent is for a thread that comes out of the library.
func (c *controller) stepEvent(t *thread) error {
	s := t.steps
	r, err := c.rthread(t.index)
	if err != nil {
		return err
	}
	control, err := c.readControl()
	if err != nil {
		return err
	}
	s.position = control.Consumed
	if r.Ordinal == s.ordinal {
		return nil
	}
	s.ordinal, s.behind, s.done, s.counts = r.Ordinal, 0, 0, map[uint64]uint64{}
	if r.Ordinal > s.to {
		t.steps = nil
	}
	return nil
}

// stepping reports whether the thread is resumed by one instruction.
func (t *thread) stepping() bool {
	return t.steps != nil && t.final == nil && !t.steps.running
}

// stepsAgain reports whether the thread is stepped again from pc.
func (t *thread) stepsAgain(pc uint64) bool {
	return t.steps != nil && slices.Contains(t.steps.breaks, pc)
}

// runSteps lets the thread go on at full speed up to one of the places; without any
// it is not stepped again before something else stops it.
func (c *controller) runSteps(t *thread, pcs ...uint64) error {
	t.steps.running, t.steps.breaks = true, pcs
	return c.placer.resumeAt(t, pcs...)
}

// stepOn has the thread stepped again.
func (c *controller) stepOn(t *thread) error {
	t.steps.running, t.steps.breaks = false, nil
	return c.placer.resumeAt(t)
}

// stepped handles a thread that has executed an instruction and continues. spent: Most is reached,
// and the replay is over.
func (c *controller) stepped(t *thread, regs *ptrace.Registers) error {
	if c.stepper.left--; c.stepper.left == 0 {
		c.end = &end{kind: EndMoment, thread: t}
		return nil
	}
	if t.steps.done++; t.steps.done == c.stepper.Share {
		return c.leaveStep(t)
	}
	inside, err := c.inLibrary(regs.Rip)
	if err != nil {
		return err
	}
	t.steps.within = t.steps.within && inside
	if inside {
		if err := c.enterLibrary(t, regs); err != nil {
			return err
		}
	} else {
		c.observe(t, regs, true)
		if err := c.leaveLoop(t); err != nil {
			return err
		}
	}
	return c.cont(t, 0)
}

// leaveStep lets a thread do the rest of a long step at full speed.
func (c *controller) leaveStep(t *thread) error {
	c.stepper.Cut = true
	c.deliver(t.steps, 0, 0)
	t.steps = nil
	if err := c.placer.resumeAt(t); err != nil {
		return err
	}
	return c.cont(t, 0)
}

// leaveLoop runs a thread at full speed through a loop whose iterations have become the same.
func (c *controller) leaveLoop(t *thread) error {
	s := t.steps
	inst := c.instruction(s.last)
	exits, ready := s.loop.next(s.last, inst, c.instruction, func() []Stepped { return s.pending }, func(a evidence.Addr) bool {
		return uint64(a) < s.low || uint64(a) >= s.top
	})
	if !ready || c.placer.room(t) < len(exits) {
		return nil
	}
	for pc := range s.loop.body {
		s.counts[pc] = lost
	}
	c.deliver(s, 0, 0)
	s.loop = loop{}
	return c.runSteps(t, exits...)
}

// inLibrary reports whether a pc is the recording library's.
func (c *controller) inLibrary(pc uint64) (bool, error) {
	if c.library == nil {
		maps, err := readMaps(c.pid)
		if err != nil {
			return false, err
		}
		library := string(c.rec.Manifest.Agent.Path)
		for i := range maps {
			if m := &maps[i]; m.path == library && m.perms[2] == 'x' {
				c.library = append(c.library, m.span)
			}
		}
	}
	for _, x := range c.library {
		if pc >= x.start && pc < x.end {
			return true, nil
		}
	}
	return false, nil
}

// enterLibrary lets the thread go on at full speed to where it comes back. In the
// ways into the engine that is known as soon as the frame is there; elsewhere it
// stands at a function's first instruction.
func (c *controller) enterLibrary(t *thread, regs *ptrace.Registers) error {
	s := t.steps
	c.deliver(s, 0, 0)
	s.loop = loop{}
	control, err := c.readControl()
	if err != nil {
		return err
	}
	if regs.Rip < control.TextLow || regs.Rip >= control.TextHigh {
		if s.within {
			return nil
		}
		var word [8]byte
		if _, err := c.memory.ReadAt(word[:], int64(regs.Rsp)); err != nil {
			return err
		}
		back := []uint64{binary.LittleEndian.Uint64(word[:])}
		if maps, err := readMaps(c.pid); err != nil {
			return err
		} else if !maps.executable(back[0]) {
			s.within = true // it was not called, and is stepped to where it is left
			return nil
		}
		s.called, s.first = regs.Rip, regs.Rdi
		if r, err := c.rthread(t.index); err == nil && r.Start != 0 && !s.started {
			back = append(back, r.Start) // the thread's own function, which the library calls
			s.started = true
		}
		return c.runSteps(t, back...)
	}
	r, err := c.rthread(t.index)
	if err != nil || r.Inside == 0 {
		return err
	}
	f, err := readStruct[agent.RawFrame](c.memory, r.Inside)
	if err != nil {
		return err
	}
	return c.runSteps(t, f.RIP)
}

// cameBack handles a thread that has reached an address where it is to be stepped again.
func (c *controller) cameBack(t *thread, regs *ptrace.Registers) error {
	if len(c.stepper.Calls) > 0 {
		return c.cameToCall(t, regs)
	}
	s := t.steps
	called := s.called
	s.called = 0
	if err := c.stepOn(t); err != nil {
		return err
	}
	ordinal := s.ordinal
	if err := c.stepEvent(t); err != nil || t.steps == nil {
		return err
	}
	if inside, err := c.inLibrary(regs.Rip); err != nil {
		return err
	} else if inside { // from the engine into a function that called it
		s.within = true
		return nil
	}
	c.observe(t, regs, true)
	if called != 0 && s.ordinal == ordinal {
		c.stepper.On(&Stepped{Thread: t.index, Ordinal: s.ordinal, Position: s.position, PC: evidence.Addr(regs.Rip),
			Count: s.count(regs.Rip), Behind: s.behind, Called: evidence.Addr(called), First: s.first})
	}
	return nil
}

// observe notes the accesses of the next instruction.
func (c *controller) observe(t *thread, regs *ptrace.Registers, arrives bool) {
	s := t.steps
	inst := c.instruction(regs.Rip)
	again := inst != nil && regs.Rip == s.last && repeatsItself(inst)
	if arrives && !again {
		s.counts[regs.Rip]++
	}
	c.deliver(s, regs.Rip, s.count(regs.Rip))
	s.last = regs.Rip
	if inst == nil {
		return
	}
	for i := range inst.Operands {
		o := &inst.Operands[i]
		if !o.IsMemory || o.Access == "" || o.Size == 0 {
			continue
		}
		addr, known := operandAddress(o, regs)
		if !known {
			continue
		}
		s.pending = append(s.pending, Stepped{Thread: t.index, Ordinal: s.ordinal, Position: s.position, PC: evidence.Addr(regs.Rip),
			Count: s.count(regs.Rip), Behind: s.behind, Addr: evidence.Addr(addr), Size: uint64(o.Size), Kind: o.Access})
	}
}

// deliver reports the accesses of the previous instruction.
func (c *controller) deliver(s *steps, next, count uint64) {
	for i := range s.pending {
		x := &s.pending[i]
		x.Next, x.NextCount = evidence.Addr(next), count
		c.stepper.On(x)
	}
	s.pending = s.pending[:0]
}

// stepParked: the thread is preempted, so the instruction is executed later.
func (t *thread) stepParked() {
	if t.steps != nil {
		t.steps.pending = t.steps.pending[:0]
	}
}

// stepUnparked: it goes on.
func (c *controller) stepUnparked(t *thread, regs *ptrace.Registers) error {
	if t.steps == nil {
		return nil
	}
	if err := c.stepEvent(t); err != nil || t.steps == nil {
		return err
	}
	t.steps.behind++
	t.steps.counts, t.steps.loop = map[uint64]uint64{}, loop{}
	if len(c.stepper.Calls) > 0 {
		t.steps.called = 0
		return c.awaitCalls(t)
	}
	if err := c.stepOn(t); err != nil {
		return err
	}
	c.observe(t, regs, false)
	return nil
}

// finishSteps hands on what threads were about to access at the end: an access that
// fails is among it.
func (c *controller) finishSteps() {
	if c.stepper == nil {
		return
	}
	for _, t := range c.sortedThreads() {
		if t.steps != nil {
			c.deliver(t.steps, 0, 0)
		}
	}
}

func (c *controller) instruction(pc uint64) *x86.Inst {
	s := c.stepper
	inst, known := s.instructions[pc]
	if !known {
		inst = newCodeReader(c).decode(pc)
		s.instructions[pc] = inst
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
