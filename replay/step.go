package replay

import (
	"encoding/binary"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image/x86"
	"diagnose/replay/ptrace"
)

// Stepping executes a part of a replay one instruction at a time and tells what
// memory it accesses, at some 10 us each. The recording library's own code is
// left out, and so are handlers of signals that interrupt a thread on its way
// out of that.
type Stepping struct {
	// Windows are the parts, by thread.
	Windows map[uint32]StepWindow
	// Most is how many instructions are executed so, of all threads; with the next
	// the replay ends there, as at a Moment. Share is how many of a thread between
	// two events, 0: all; it does the rest at full speed, and Cut is set.
	Most, Share uint64
	Cut         bool
	// On is called for each access, in order, and for each return from a function of
	// the recording library.
	On func(*Stepped)
	// Calls, if there are any, are functions of the recording library: nothing is
	// stepped, and On is called for returns from those alone, of which there may be as
	// many as there are debug registers to spare, the first of them.
	Calls []evidence.Addr
}

// StepWindow is what a thread does behind its event From, up to the event behind
// To.
type StepWindow struct{ From, To uint64 }

// Stepped is an access, or a return from a function of the recording library.
type Stepped struct {
	Thread  uint32
	Ordinal uint64 // of the thread's event before
	// Position is how many events of all threads were done.
	Position uint64
	// PC is the instruction's. Count is which arrival there since the event, or the
	// preemption at an instruction, before; 0: the thread was preempted there. Behind
	// is how many of those preemptions the step had.
	PC     evidence.Addr
	Count  uint64
	Behind int
	// Next is where the thread was behind it, for the NextCount-th time; 0: it went
	// into the library.
	Next      evidence.Addr
	NextCount uint64
	// Addr, Size and Kind are of an access. Called is the function that was returned
	// from, with this first argument; PC is where to.
	Addr   evidence.Addr
	Size   uint64
	Kind   evidence.AccessKind
	Called evidence.Addr
	First  uint64
}

// steps is what is known of a thread that is stepped.
type steps struct {
	to       uint64
	ordinal  uint64
	position uint64
	behind   int
	done     uint64 // instructions since the event
	counts   map[uint64]uint64
	last     uint64 // pc
	pending  []Stepped
	// running: it goes on at full speed, in the library or in a loop, and is stepped
	// again at the breaks.
	running  bool
	breaks   []uint64
	called   uint64 // function of the library, if it is known
	first    uint64 // its first argument
	within   bool   // in the library, and stepped to where it is left
	started  bool   // the thread's function has been looked for
	loop     loop
	low, top uint64 // of its stack
}

// lost is the count of arrivals at an instruction of a loop that was not stepped.
const lost = 1 << 63

func (s *steps) count(pc uint64) uint64 {
	if n := s.counts[pc]; n < lost {
		return n
	}
	return 0
}

// stepper is of a replay that steps.
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

// beginSteps is for a thread in the engine that has done the event before its
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

// stackLow is where a thread's stack ends: the first thread's grows as far as the
// engine lets it (dg_stack_low).
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

// stepping reports whether the thread goes on by one instruction.
func (t *thread) stepping() bool {
	return t.steps != nil && t.final == nil && !t.steps.running
}

// stepsAgain reports whether it is stepped from pc on.
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

// stepped is for a thread behind an instruction. True: the replay goes on.
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

// leaveLoop lets a thread run through a loop whose iterations have become the same.
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

// cameBack is for a thread that stands where it was to be stepped again.
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

// observe notes what the instruction accesses that comes next.
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

// deliver hands on what the instruction before accessed.
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
