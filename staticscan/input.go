package staticscan

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
)

// Input is the stopped process and the thread that failed.
type Input struct {
	Process *image.Process
	Thread  *image.Thread
	// Frames are the thread's physical and signal frames, innermost first,
	// from unwind.Unwinder.Walk. Frames whose Calls are empty are symbolized
	// by this package.
	Frames []unwind.Frame
	// Signal is what the thread failed with; nil stands for Thread.Signal.
	Signal *evidence.Signal
}

// Options says what is scanned.
type Options struct {
	// Depth is how many callers of the failing function, and how many levels
	// of functions that it calls directly, are scanned with it.
	Depth int
	// Functions replaces the failing function by functions with these names.
	Functions []string
	// At replaces it by the functions that have code at these addresses.
	At []evidence.Addr
	// Message replaces the failing function by those that refer to a string
	// literal which contains it.
	Message string
	// Handed adds what functions of the program's own are handed the address of: their
	// code has it in a register only.
	Handed bool
	// Blame is the result of Origin; its cell becomes the strongest suspect.
	Blame *Blame
}

// Bounds of a scan. A scope beyond them is cut and a Limit says so.
const (
	maxFunctions    = 64
	maxInstructions = 400_000
	maxFunctionSize = 4 << 20 // bytes
	maxSuspects     = 200
	maxHops         = 4 // pointers followed in a row
)

func (in *Input) signal() *evidence.Signal {
	if in.Signal != nil {
		return in.Signal
	}
	if in.Thread != nil {
		return in.Thread.Signal
	}
	return nil
}

// calls returns the frame's inline chain.
func (in *Input) calls(f *unwind.Frame) []image.SymbolizedCall {
	if len(f.Calls) > 0 {
		return f.Calls
	}
	return in.Process.Symbolize(f.PC(), f.Lookup)
}
