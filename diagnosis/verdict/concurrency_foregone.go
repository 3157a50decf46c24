package verdict

import (
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// gaveUp are the failures that the program itself decided on. What it reads behind that
// decision, to say what is wrong, has no part in it.
var gaveUp = map[evidence.FailureKind]bool{evidence.Abort: true, evidence.AssertionFailure: true, evidence.CxxTerminate: true,
	evidence.RustPanic: true, evidence.ExitStatus: true}

// foregone leaves out of a failing run's log what was accessed when the failure was
// decided: by code of the function that gave up from which there is one way only, to the
// call that ended the process.
func (tr *tracer) foregone(log *evidence.AccessLog, failing uint32) {
	end, found := gaveUpAt(tr.in.Case)
	if !found {
		return
	}
	known := map[evidence.Addr]bool{}
	log.Accesses = slices.DeleteFunc(log.Accesses, func(a evidence.Access) bool {
		if a.Thread != failing || a.By != evidence.ByProgram {
			return false
		}
		leads, seen := known[a.PC]
		if !seen {
			leads = leadsTo(tr.in.Process, a.PC, end)
			known[a.PC] = leads
		}
		return leads
	})
}

// gaveUpAt is where the program's own function would have gone on, if the call by which
// it gave up had come back.
func gaveUpAt(c *evidence.Case) (evidence.Addr, bool) {
	if !gaveUp[c.Failure.Kind] {
		return 0, false
	}
	for _, g := range c.Stacks {
		if !g.Failing {
			continue
		}
		for i := range g.Stack.Frames {
			if f := &g.Stack.Frames[i]; f.Kind == evidence.Physical && i > 0 && !image.LibraryCode(&f.Site) {
				return f.Site.PC, true
			}
		}
	}
	return 0, false
}

// leadsTo reports whether code comes from an instruction to the call before an address,
// whatever it computes.
func leadsTo(m image.Memory, pc, end evidence.Addr) bool {
	const (
		most    = 64 // instructions: of a message that is put together
		longest = 15 // bytes of one (Intel SDM, volume 2, 2.3.11)
	)
	for range most {
		code := make([]byte, longest)
		n, _ := m.ReadMemory(pc, code) // as far as it goes
		in, err := x86.Decode(code[:n], uint64(pc))
		if err != nil {
			return false
		}
		pc += evidence.Addr(in.Len)
		switch in.Flow {
		case x86.FlowNext:
		case x86.FlowCall:
			if pc == end {
				return true
			}
		case x86.FlowJump:
			if !in.HasTarget {
				return false
			}
			pc = evidence.Addr(in.Target)
		default:
			return false
		}
	}
	return false
}
