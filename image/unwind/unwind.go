// Package unwind walks the stacks of a stopped process by call frame
// information (DWARF 5 section 6.4; System V ABI for x86-64, section 3.7),
// and marks every step that had to be guessed.
package unwind

import (
	"diagnose/evidence"
	"diagnose/image"
)

// Frame is a physical or signal frame.
type Frame struct {
	Kind      evidence.FrameKind
	Trust     evidence.Trust
	Registers image.Registers
	// CFA is the value of the stack pointer before the call that made the
	// frame; 0 when it could not be found.
	CFA evidence.Addr
	// Lookup says whether the frame's pc is a return address.
	Lookup image.Lookup
	// Return is the address that the frame's function returns to, as call frame
	// information says; 0: it is not known so well, or a signal handler returns there.
	Return evidence.Addr
	// Calls is the inline chain, innermost first, the physical function last.
	Calls []image.SymbolizedCall
	// TailCalls are functions without a frame, innermost first: the caller called the last one,
	// and each called the one before it, the first this frame's function, as its last action.
	TailCalls []TailCall
}

// PC returns the frame's instruction pointer.
func (f *Frame) PC() evidence.Addr { return f.Registers.PC() }

// LookupPC is the address whose function and call frame information apply.
func (f *Frame) LookupPC() evidence.Addr { return f.Lookup.Address(f.PC()) }

// Stack is a thread's physical frames, innermost first.
type Stack struct {
	Frames []Frame
	// Stopped says why the walk ended before the outermost frame.
	Stopped string
	// Truncated says that it ended at the limit of frames.
	Truncated bool
	// Depth counts the frames walked. It exceeds len(Frames) by Omitted, the
	// frames that WalkEnds left out before Frames[OmittedAt].
	Depth              int
	Omitted, OmittedAt int
	// Cycle is the recursion that makes up the stack, if WalkEnds found one.
	Cycle *Cycle
}

// Unwinder walks the stacks of one process; it caches its results for each pc.
// It is safe for concurrent use.
type Unwinder struct {
	process process
	entry   evidence.Addr // of the program; 0 is not known
	places  placeCache
	modules moduleCache
	tails   tailCache
}

// process is the part of *image.Process that a walk uses.
type process interface {
	image.Memory
	MappingAt(addr evidence.Addr) *image.Mapping
	ModuleAt(addr evidence.Addr) *image.Module
	SymbolAt(addr evidence.Addr) (image.Symbol, bool)
	SymbolNamed(name string) (image.Symbol, bool)
	Symbolize(pc evidence.Addr, how image.Lookup) []image.SymbolizedCall
}

// New returns an unwinder for the process.
func New(p *image.Process) *Unwinder {
	return &Unwinder{process: p, entry: p.EntryPoint()}
}

// Walk returns at most limit frames of a thread. The frames' Calls and TailCalls are not
// filled: Symbolize does that, for the frames that will be shown. A frame takes
// about 250 bytes; for a stack overflow, WalkEnds keeps only the frames that
// are shown.
func (u *Unwinder) Walk(t *image.Thread, limit int) Stack {
	var s Stack
	end := u.walkFunc(t, limit, func(f *Frame) bool {
		s.Frames = append(s.Frames, *f)
		return true
	})
	s.Stopped, s.Truncated, s.Depth = end.stopped, end.truncated, end.depth
	return s
}

// Visit walks a stack of the process, starting at regs. It reads the stack from
// memory, which may be a copy of its top, and calls visit with each frame,
// innermost first, until that returns false or the stack ends. The Frame is
// reused.
func (u *Unwinder) Visit(memory image.Memory, regs *image.Registers, limit int, visit func(*Frame) bool) {
	u.walkOn(memory, regs, limit, visit)
}

// Symbolize fills the Calls and TailCalls of the frames. Equal pcs are looked up once.
func (u *Unwinder) Symbolize(frames []Frame) {
	type key struct {
		pc, back evidence.Addr
		lookup   image.Lookup
	}
	type names struct {
		calls []image.SymbolizedCall
		tails []TailCall
	}
	known := map[key]names{}
	for i := range frames {
		f := &frames[i]
		k := key{f.PC(), f.Return, f.Lookup}
		n, ok := known[k]
		if !ok {
			n.calls = u.process.Symbolize(f.PC(), f.Lookup)
			n.tails = u.tailCalls(f, n.calls)
			known[k] = n
		}
		f.Calls, f.TailCalls = n.calls, n.tails
	}
}
