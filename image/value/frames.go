package value

import (
	"diagnose/image"
	"diagnose/image/unwind"
)

// mostCallers is how many callers of a frame are searched for the arguments that the frame itself has lost.
const mostCallers = 3

// FrameIn is the context in which the variables of frame i of a thread are read; nil: its code is in no object.
func FrameIn(p *image.Process, t *image.Thread, frames []unwind.Frame, i int) *Frame {
	var first, inner *Frame
	for k := i; k < min(i+1+mostCallers, len(frames)); k++ {
		f := &frames[k]
		m := p.ModuleAt(f.PC())
		if m == nil {
			break
		}
		frame := &Frame{Process: p, Thread: t, Module: m, Registers: f.Registers, CFA: f.CFA, Lookup: f.Lookup}
		if inner == nil {
			first = frame
		} else {
			inner.CalledBy(frame)
		}
		inner = frame
	}
	return first
}
