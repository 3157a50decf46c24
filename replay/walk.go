package replay

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// Walk follows one call of a function, an instruction at a time, at some 20 us each. The calls
// that it makes itself run at full speed. The replay ends with it.
type Walk struct {
	// At is where a thread is about to call the function, or to jump to it.
	At evidence.Moment
	// Into are the nested calls to follow from there, the outermost first. Each is the number,
	// from 0, of an instruction that the function before executed.
	Into []int
	// Most bounds the instructions followed, of all functions together.
	Most int
	// Over reports whether a function that the code jumps to runs at full speed as a whole. It is
	// called once for each address. nil: no function does.
	Over func(*Stopped, evidence.Addr) bool
	// On is called before each instruction of the functions. level is the number of calls of Into
	// that have been entered.
	On func(s *Stopped, level int, regs *image.Registers) error
	// Done is called at the address to which the innermost function has returned.
	Done func(*Stopped, *image.Registers) error
}

// walker is the state of a Walk.
type walker struct {
	*Walk
	process *tracee.Process
	levels  []walkLevel
	passed  int
	// waits is the address to which the thread returns from a function that runs at full speed,
	// with the stack pointer waitsSP.
	waits, waitsSP uint64
	spans          []walkSpan
	instructions   map[uint64]*x86.Inst
	over           map[uint64]bool
}

// walkLevel is a function that is followed.
type walkLevel struct {
	index int    // of the next instruction
	sp    uint64 // the stack pointer after its return
}

// walkSpan is the code of an object.
type walkSpan struct {
	tracee.Span
	path string
}

// WalkError says why a Walk did not reach the return of its function.
type WalkError struct{ Reason string }

func (e *WalkError) Error() string { return "replay: the way through the function: " + e.Reason }

func newWalker(asked *Walk, p *tracee.Process) *walker {
	return &walker{Walk: asked, process: p, instructions: map[uint64]*x86.Inst{}, over: map[uint64]bool{}}
}

// walkOn handles a thread at the start of the walk, or after a function that ran at full speed.
// more: the threads are to continue.
func (c *controller) walkOn(t *tracee.Thread, w *walker) (more bool, err error) {
	s, err := c.stopped(t)
	if err != nil {
		return false, err
	}
	defer s.close()
	s.Moment = w.At
	c.attempt.hooked = true
	c.watch.pause()
	defer c.watch.resume()
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil {
		return false, err
	}
	if w.levels == nil {
		if err := w.beginWalk(t, &regs); err != nil {
			return false, err
		}
	} else if regs.Rsp < w.waitsSP { // a deeper call of the same code
		return true, c.placer.BreakAt(t, evidence.Addr(w.waits), 1)
	}
	for {
		waits, err := w.followOne(t, s, &regs)
		switch {
		case errors.Is(err, ErrEnough):
			c.end = &end{kind: EndMoment, thread: t}
			return false, nil
		case err != nil:
			return false, err
		case waits:
			return true, c.placer.BreakAt(t, evidence.Addr(w.waits), 1)
		}
	}
}

// beginWalk notes the stack pointer after the function's return. Events during the walk do not
// concern the hook.
func (w *walker) beginWalk(t *tracee.Thread, regs *ptrace.Registers) error {
	inst := w.instruction(regs.Rip)
	if inst == nil || inst.Flow != x86.FlowCall && inst.Flow != x86.FlowJump {
		return &WalkError{fmt.Sprintf("the instruction at %v calls nothing", w.At)}
	}
	sp := regs.Rsp
	if inst.Flow == x86.FlowJump {
		sp += wordBytes
	}
	w.levels = []walkLevel{{sp: sp}}
	if err := w.process.StopAt(0, ^uint64(0)); err != nil {
		return err
	}
	return w.executeOne(t, regs)
}

const wordBytes = 8

func (w *walker) instruction(pc uint64) *x86.Inst {
	inst, known := w.instructions[pc]
	if !known {
		inst = w.process.Instruction(pc)
		w.instructions[pc] = inst
	}
	return inst
}

// followOne executes an instruction. waits: the thread is to continue at full speed to
// walker.waits.
func (w *walker) followOne(t *tracee.Thread, s *Stopped, regs *ptrace.Registers) (waits bool, err error) {
	at := &w.levels[len(w.levels)-1]
	if regs.Rsp >= at.sp {
		if len(w.levels) <= len(w.Into) {
			return false, &WalkError{"it returned before the call that was looked for"}
		}
		if err := w.Done(s, tracee.ImageRegisters(regs)); err != nil {
			return false, err
		}
		return false, ErrEnough
	}
	if w.passed++; w.passed > w.Most {
		return false, &WalkError{fmt.Sprintf("it executed more than %d instructions", w.Most)}
	}
	level := len(w.levels) - 1
	if err := w.On(s, level, tracee.ImageRegisters(regs)); err != nil {
		return false, err
	}
	index := at.index
	at.index++
	inst := w.instruction(regs.Rip)
	if inst == nil {
		return false, &WalkError{fmt.Sprintf("the instruction at %#x is not known", regs.Rip)}
	}
	next := regs.Rip + uint64(inst.Len)
	switch inst.Flow {
	case x86.FlowSyscall:
		w.waits, w.waitsSP = next, regs.Rsp
		return true, nil
	case x86.FlowCall:
		if level < len(w.Into) && index == w.Into[level] {
			w.levels = append(w.levels, walkLevel{sp: regs.Rsp})
			break
		}
		w.waits, w.waitsSP = next, regs.Rsp
		return true, nil
	case x86.FlowJump:
		if inst.HasTarget {
			if waits, err = w.passes(s, inst.Target, regs); waits || err != nil {
				return waits, err
			}
			break
		}
		from := regs.Rip
		if err := w.executeOne(t, regs); err != nil || w.sameObject(from, regs.Rip) {
			return false, err
		}
		return w.passes(s, regs.Rip, regs)
	}
	return false, w.executeOne(t, regs)
}

// passes handles a jump to a function that may run at full speed as a whole.
func (w *walker) passes(s *Stopped, to uint64, regs *ptrace.Registers) (waits bool, err error) {
	if w.Over == nil {
		return false, nil
	}
	over, known := w.over[to]
	if !known {
		over = w.Over(s, evidence.Addr(to))
		w.over[to] = over
	}
	if !over {
		return false, nil
	}
	var word [wordBytes]byte
	if _, err := w.process.Memory.ReadAt(word[:], int64(regs.Rsp)); err != nil {
		return false, &WalkError{err.Error()}
	}
	w.waits, w.waitsSP = binary.LittleEndian.Uint64(word[:]), regs.Rsp+wordBytes
	return true, nil
}

// sameObject reports whether two addresses are in code of the same file.
func (w *walker) sameObject(a, b uint64) bool {
	path := func(pc uint64) (string, bool) {
		for _, x := range w.spans {
			if pc >= x.Start && pc < x.End {
				return x.path, true
			}
		}
		return "", false
	}
	x, known := path(a)
	y, also := path(b)
	if known && also {
		return x == y
	}
	maps, err := tracee.ReadMaps(w.process.PID)
	if err != nil {
		return false
	}
	w.spans = nil
	for i := range maps {
		if m := &maps[i]; m.Perms[2] == 'x' {
			w.spans = append(w.spans, walkSpan{m.Span, m.Path})
		}
	}
	x, known = path(a)
	y, also = path(b)
	return known && also && x == y
}

// executeOne makes a single step and reads the registers after it.
func (w *walker) executeOne(t *tracee.Thread, regs *ptrace.Registers) error {
	before := regs.Rip
	stop, err := w.process.Traps.StepQuietly(t.TID)
	if err != nil {
		return err
	}
	if stop.Kind != ptrace.SignalStop || stop.Signal != unix.SIGTRAP {
		return &WalkError{fmt.Sprintf("it ended at %#x", before)}
	}
	*regs, err = ptrace.GetRegisters(t.TID)
	return err
}

// SetRegister changes a general register of the thread that was waited for, which must not be in a
// system call. The process diverges from the recording there.
func (s *Stopped) SetRegister(r image.Register, value uint64) error {
	if s.thread == nil {
		return errors.New("replay: no thread was waited for")
	}
	regs, err := ptrace.GetRegisters(s.thread.TID)
	if err != nil {
		return err
	}
	switch r {
	case image.RAX:
		regs.Rax = value
	case image.RDX:
		regs.Rdx = value
	default:
		return tracee.Inputf("replay: %v does not return a value", r)
	}
	regs.Orig_rax = ^uint64(0)
	return ptrace.SetRegisters(s.thread.TID, &regs)
}
