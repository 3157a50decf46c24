package verdict

import (
	"path"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/patterns"
	"diagnose/watchtrace"
)

// detects is why an order of a detector is not proved, although it cures.
const detects = "atomic instructions order themselves, and whoever is kept from coming second is not found out: what brought both threads there decides"

// detector reports whether a candidate is who is first at a check that the failing
// function makes by atomic instructions. It finds out that two contexts have what is
// one's: keeping them apart cures any reason for that.
func (r *race) detector(c *patterns.Candidate) bool {
	log := r.failing[c.Run].log
	if c.Never || len(c.Accesses) != 2 {
		return false
	}
	return !slices.ContainsFunc(c.Accesses, func(i int) bool {
		a := &log.Accesses[i]
		return a.Kind != evidence.CodeReadWrite || !r.atomic(a.PC) || !r.fails(&log.Contexts[a.Context].Site)
	})
}

// fails reports whether a place is in a function that the failing thread was in.
func (w *work) fails(s *evidence.Site) bool {
	for _, g := range w.Case.Stacks {
		if g.Failing && slices.ContainsFunc(g.Stack.Frames, func(f evidence.Frame) bool {
			return s.Function != "" && evidence.ShortName(f.Site.Function) == evidence.ShortName(s.Function)
		}) {
			return true
		}
	}
	return false
}

// atomic reports whether the instruction at an address has a lock prefix. Code that
// cannot be read is not known to have one.
func (w *work) atomic(pc evidence.Addr) bool {
	const lock, operandSize = 0xf0, 0x66
	code := make([]byte, 2)
	n, _ := w.Process.ReadMemory(pc, code)
	code = code[:n]
	return len(code) > 0 && (code[0] == lock || len(code) > 1 && code[0] == operandSize && code[1] == lock)
}

// foreign reports whether a target is no variable of the program: the insides of
// libc's locks, and what is the agent's.
func (w *work) foreign(t watchtrace.Target) bool {
	if strings.Contains(t.Name, ".__data.") || strings.Contains(t.Name, "->__data.") {
		return true
	}
	m := w.Process.ModuleAt(t.Addr)
	return m != nil && strings.HasPrefix(path.Base(m.Path), "libdiagnose-")
}
