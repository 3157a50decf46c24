package unwind

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
)

// ending says how a walk ended.
type ending struct {
	// depth counts the frames visited.
	depth int
	// stopped says why the walk ended before the outermost frame; empty when
	// that was reached, or when the visitor or the limit ended it.
	stopped string
	// truncated says that it ended at the limit of frames.
	truncated bool
}

// maxStackSwitches bounds how often a stack may continue at a lower address:
// alternate signal stacks, coroutines, split stacks.
const maxStackSwitches = 64

// walk is the state of one walk.
type walk struct {
	unwinder *Unwinder
	stack    stackReader
	frame    Frame
	switches int
}

// walkFunc calls visit with each frame of a thread, innermost first, until it
// returns false, limit frames were visited, or the stack ends. The Frame is
// reused: visit must copy what it keeps.
func (u *Unwinder) walkFunc(t *image.Thread, limit int, visit func(*Frame) bool) ending {
	return u.walkOn(u.process, &t.Registers, limit, visit)
}

func (u *Unwinder) walkOn(stack image.Memory, regs *image.Registers, limit int, visit func(*Frame) bool) ending {
	w := walk{unwinder: u, stack: stackReader{memory: stack, spent: &u.modules.spent}}
	w.frame = Frame{Kind: evidence.Physical, Trust: evidence.TrustContext, Registers: *regs}
	var end ending
	for {
		if end.depth >= limit {
			end.truncated = true
			return end
		}
		s := w.step()
		end.depth++
		if !visit(&w.frame) {
			return end
		}
		if s.stopped != "" || s.outermost {
			end.stopped = s.stopped
			return end
		}
		if reason := w.advance(&s); reason != "" {
			end.stopped = reason
			return end
		}
	}
}

// step is the step from a frame to its caller.
type step struct {
	caller    image.Registers
	trust     evidence.Trust
	outermost bool
	stopped   string
	// injected says that the caller was interrupted, and did not call;
	// switches that it may be on any other stack.
	injected, switches bool
}

// step completes w.frame by its kind and CFA and finds the caller.
func (w *walk) step() step {
	f := &w.frame
	p := w.unwinder.place(f)
	if p.signal {
		// The trampoline was reached by the handler's return, not by a call
		// before it, so its pc is looked up unchanged.
		f.Kind, f.Lookup = evidence.SignalFrame, image.AtInstruction
	}
	if p.stopped != "" {
		return step{stopped: p.stopped}
	}
	failed := p.problem
	for i := range p.ways {
		way := &p.ways[i]
		if way.row.outermost {
			f.CFA, _ = way.row.cfaOf(&f.Registers, &w.stack)
			return step{outermost: true}
		}
		caller, cfa, err := way.row.apply(&f.Registers, &w.stack)
		if err == nil && way.trust.Guess() {
			err = w.plausible(&caller, cfa, way)
		}
		if err == nil {
			f.CFA = cfa
			if way.trust == evidence.TrustCFI && f.Kind == evidence.Physical {
				f.Return = caller.PC()
			}
			// Thread and process entries of some libraries have a return
			// address of 0 instead of an undefined one.
			end := caller.PC() == 0 && way.trust == evidence.TrustCFI
			return step{caller: caller, trust: way.trust, outermost: end, injected: p.injected, switches: way.switches}
		}
		if failed == nil {
			failed = fmt.Errorf("%s: %w", way.source, err)
		}
	}
	if p.otherStack != "" {
		if fp, known := f.Registers.Get(image.RBP); known && fp == 0 {
			return step{outermost: true}
		}
		return step{stopped: p.otherStack}
	}
	return w.scan(failed)
}

// advance makes the caller the current frame. The result says why that is
// impossible.
func (w *walk) advance(s *step) string {
	f := &w.frame
	if s.caller.PC() == 0 {
		return "the return address is 0"
	}
	if reason := w.checkGrowth(s); reason != "" {
		return reason
	}
	lookup := image.ReturnAddress
	if f.Kind == evidence.SignalFrame || s.injected {
		lookup = image.AtInstruction
	}
	*f = Frame{Kind: evidence.Physical, Trust: s.trust, Registers: s.caller, Lookup: lookup}
	return ""
}

// checkGrowth rejects callers that are not further out on the stack, unless the
// stack changes: otherwise the walk might loop.
func (w *walk) checkGrowth(s *step) string {
	f := &w.frame
	from, to := f.Registers.SP(), s.caller.SP()
	if to > from || f.Kind == evidence.SignalFrame && to != from {
		if f.Kind == evidence.SignalFrame && to < from {
			w.switches++
		}
		if w.switches > maxStackSwitches {
			return fmt.Sprintf("the stack changes more than %d times", maxStackSwitches)
		}
		return ""
	}
	a, b := w.unwinder.process.MappingAt(from), w.unwinder.process.MappingAt(to)
	other := s.switches || s.trust == evidence.TrustCFI && a != b // goroutines' stacks are in one mapping
	if to != from && other && a != nil && b != nil {
		if w.switches++; w.switches <= maxStackSwitches {
			return ""
		}
	}
	return fmt.Sprintf("the caller's stack pointer %v is not above the frame's %v", to, from)
}
