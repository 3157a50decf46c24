package driver

import (
	"path/filepath"
	"slices"
	"strings"

	"diagnose/agent"
	"diagnose/image"
	"diagnose/image/unwind"
)

// passEngine takes the innermost frames of threads that stand in a call that
// was being recorded: they are the recording library's, and what the program
// was doing begins with its own call. What a thread waits for is found by
// them, so this comes behind that. A fault in the library stays what it is.
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

// registers are those of the thread under judgement where its stack begins.
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
	// All of a stack is no way into the library, but one that ends there.
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

// engineFrame reports whether a frame is of the library's inside: what it has
// in the place of the program's functions (pthread_mutex_lock) stays.
func (a *analysis) engineFrame(f *unwind.Frame) bool {
	m := a.process.ModuleAt(f.LookupPC())
	if m == nil || filepath.Base(m.Path) != agent.RecordLibraryName {
		return false
	}
	symbol, ok := a.process.SymbolAt(f.LookupPC())
	return ok && strings.HasPrefix(symbol.Name, "dg_")
}
