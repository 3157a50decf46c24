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
func (sp *stoppedProcess) passEngine() {
	for i := range sp.walked {
		if s := sp.process.Threads[i].Signal; s == nil || !s.HasAddr {
			sp.passEngineOf(&sp.walked[i])
		}
	}
	for _, g := range sp.stacks {
		if s := g.threads[0].Signal; s == nil || !s.HasAddr {
			sp.passEngineOf(&g.stack)
		}
	}
}

// registers are those of the thread under judgement at the first frame of its stack.
func (sp *stoppedProcess) registers() *image.Registers {
	for i := range sp.process.Threads {
		if &sp.process.Threads[i] == sp.thread && i < len(sp.walked) && len(sp.walked[i].Frames) > 0 {
			return &sp.walked[i].Frames[0].Registers
		}
	}
	return &sp.thread.Registers
}

func (sp *stoppedProcess) passEngineOf(s *unwind.Stack) {
	n := 0
	for n < len(s.Frames) && sp.engineFrame(&s.Frames[n]) {
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
func (sp *stoppedProcess) engineFrame(f *unwind.Frame) bool {
	m := sp.process.ModuleAt(f.LookupPC())
	if m == nil || filepath.Base(m.Path) != agent.RecordLibraryName {
		return false
	}
	symbol, ok := sp.process.SymbolAt(f.LookupPC())
	return ok && strings.HasPrefix(symbol.Name, "dg_")
}
