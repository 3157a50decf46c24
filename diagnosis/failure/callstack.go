package failure

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
)

// callStack is the failing thread's stack. Its frames begin at the instruction under judgement. For
// a failure inside a crash handler that is the interrupted instruction.
type callStack struct {
	*process
	thread *image.Thread
	frames []unwind.Frame
	// walk is the unwinder's result for the frames as a whole.
	walk unwind.Stack
	// cut is how many of the walk's innermost frames are not in frames, and
	// cutHandlers how many frames of handlers of SIGABRT are among those.
	cut, cutHandlers int
}

// drop removes the innermost n frames, which are those of a handler.
func (k *callStack) drop(n int) {
	k.frames, k.cut = k.frames[n:], k.cut+n
}

// registers are those of the innermost frame.
func (k *callStack) registers() *image.Registers {
	if len(k.frames) > 0 {
		return &k.frames[0].Registers
	}
	return &k.thread.Registers
}

func (k *callStack) pc() evidence.Addr { return k.registers().PC() }

// above is the stack without its innermost n frames.
func (k *callStack) above(n int) *callStack {
	out := *k
	out.frames = k.frames[n:]
	return &out
}
