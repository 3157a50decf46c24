package driver

import (
	"path/filepath"
	"slices"
	"strings"

	"diagnose/agent"
	"diagnose/image"
	"diagnose/image/unwind"
)

// passEngine removes the innermost frames of threads in a call that was being recorded: they belong
// to the recording library, and the program's part begins with its own call. The removed frames
// show what a thread waits for, so this happens after the waits are read. A fault in the library is
// not changed.
func (a *analysis) passEngine() {
	for i := range a.walked {
		if s := a.process.Threads[i].Signal; s == nil || !s.HasAddr {
			a.passEngineOf(&a.walked[i])
		}
	}
	for _, g := range a.stacks {
		if s := g.threads[0].Signal; s == nil || !s.HasAddr {
			a.passEngineOf(&g.stack)
		}
	}
}

// registers are those of the thread under judgement at the first frame of its stack.
func (a *analysis) registers() *image.Registers {
	for i := range a.process.Threads {
		if &a.process.Threads[i] == a.thread && i < len(a.walked) && len(a.walked[i].Frames) > 0 {
			return &a.walked[i].Frames[0].Registers
		}
	}
	return &a.thread.Registers
}

func (a *analysis) passEngineOf(s *unwind.Stack) {
	n := 0
	for n < len(s.Frames) && a.engineFrame(&s.Frames[n]) {
		n++
	}
	// A stack that has only frames of the library did not enter it from the program, but ends
	// there.
	if n == 0 || n == len(s.Frames) || s.Omitted > 0 && n > s.OmittedAt {
		return
	}
	s.Frames = slices.Clone(s.Frames[n:])
	s.Depth -= n
	if s.Omitted > 0 {
		s.OmittedAt -= n
	}
	if s.Cycle != nil {
		cycle := *s.Cycle
		cycle.First = max(0, cycle.First-n)
		s.Cycle = &cycle
	}
}

// engineFrame reports whether a frame is internal to the library. Its functions that replace
// functions of the program (pthread_mutex_lock) are not.
func (a *analysis) engineFrame(f *unwind.Frame) bool {
	m := a.process.ModuleAt(f.LookupPC())
	if m == nil || filepath.Base(m.Path) != agent.RecordLibraryName {
		return false
	}
	symbol, ok := a.process.SymbolAt(f.LookupPC())
	return ok && strings.HasPrefix(symbol.Name, "dg_")
}
