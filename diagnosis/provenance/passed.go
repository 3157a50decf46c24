package provenance

import (
	"slices"

	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// Argument is a value that a call handed over, step Call, in a register.
type Argument struct {
	Call     int
	Register x86.Reg
}

// Arguments are the values on the way that calls of the program handed over to functions which stored them, the nearest to the failure first.
func (w *Way) Arguments(t *flow.Trace, p Program) (list []Argument) {
	u := useSearch{newFollower(t, p)}
	for i := range w.Links {
		l := &w.Links[i]
		if l.Kind != Stored || !p.Own(l.PC) {
			continue
		}
		call := u.callOf(l.at)
		if call < 0 || !p.Own(t.Step(call).PC) {
			continue
		}
		if r, known := u.passedIn(l.to, l.at+1, call); known {
			list = append(list, Argument{call, r})
		}
	}
	return list
}

// passedIn is the register in which a call handed over the value that bytes have before step n, if it was only copied since.
func (u useSearch) passedIn(l flow.Location, n, call int) (x86.Reg, bool) {
	const mostCopies = 64
	for range mostCopies {
		d := u.define(l, n)
		if d.At <= call {
			r := x86.Reg(d.Part.Num)
			return r, d.Part.Space == transfer.General && slices.Contains(x86.ArgumentRegisters[:], r)
		}
		if d.Kind != flow.Copied {
			return 0, false
		}
		l, n = d.From[0], d.At
	}
	return 0, false
}

// throughCalls adds links for the calls that handed a register over which step n uses, and which d gave its value before them.
func (f *follower) throughCalls(l flow.Location, n int, d flow.Definition) {
	const mostSteps = 4096
	if l.Space != transfer.General || !slices.Contains(x86.ArgumentRegisters[:], x86.Reg(l.Num)) || d.At < 0 {
		return
	}
	const address = 8 // bytes of a return address
	sp := f.trace.Register(n, x86.RSP)
	at := f.trace.Previous(n)
	for range mostSteps {
		if at <= d.At {
			return
		}
		if s := f.trace.Step(at); s.Inst != nil && !s.Library && s.Inst.Flow == x86.FlowCall && f.trace.Register(at, x86.RSP) >= sp+address {
			if k := len(f.way.Links) - 1; k >= 0 && f.way.Links[k].at == n && f.way.Links[k].Kind == Stored {
				f.way.Links[k].Spilled = true
			}
			f.link(Passed, at, l)
			sp = f.trace.Register(at, x86.RSP)
		}
		at = f.trace.Previous(at)
	}
}
