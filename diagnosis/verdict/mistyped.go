package verdict

import (
	"fmt"
	"slices"

	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
	"diagnose/image/unwind"
	"diagnose/staticscan"
)

// mostCalls is how many calls of the failing thread's stack are looked at, from the failing function outwards.
const mostCalls = 4

// mistyped names the call that handed over a value of another type than the function expects, if the failing instruction's address was
// made of it: arguments that are swapped, a number for a pointer. The types say so, whatever the value is.
func (w *work) mistyped() bool {
	x, f := w.exact, &w.Case.Failure
	damaged := slices.ContainsFunc(w.Case.Findings, func(f evidence.Finding) bool { return findingKinds[f.Kind] != "" })
	if damaged || w.Process == nil || x.handled != nil || f.Fault == nil && f.Kind != evidence.DivisionByZero {
		return false
	}
	thread := w.Process.FailingThread()
	if thread == nil {
		return false
	}
	const frames = 64
	in := staticscan.Input{Process: w.Process, Thread: thread, Frames: unwind.New(w.Process).Walk(thread, frames).Frames}
	own := staticscan.OwnFrames(in, mostCalls)
	mistyped := map[int][]staticscan.Mistyped{}
	for _, k := range own {
		if list := staticscan.MistypedArguments(in, k+1); len(list) > 0 {
			mistyped[k] = list
		}
	}
	if len(mistyped) == 0 {
		return false // without a trace, which takes long
	}
	if err := x.record(w.ctx, w.Image, w.say); err != nil || !x.failed() {
		return false
	}
	last := x.last()
	for _, k := range own {
		call := provenance.Call(x.trace, last, uint64(in.Frames[k].CFA))
		if call < 0 {
			return false // the frames outside of it are of before the trace
		}
		list := mistyped[k]
		if len(list) == 0 {
			continue
		}
		used := provenance.Parameters(x.trace, last, call)
		for i := range list {
			m := &list[i]
			value := x.trace.Register(call, m.Register)
			if !slices.Contains(used, m.Register) || m.Number && x.program.Mapped(evidence.Addr(value)) {
				continue
			}
			if cause := x.mistypedCause(m, call, value); cause != nil {
				w.out.Causes = append(w.out.Causes, *cause)
				return true
			}
		}
	}
	return false
}

func (x *exact) mistypedCause(m *staticscan.Mistyped, call int, value uint64) *evidence.Cause {
	site := x.site(x.trace.Step(call).PC)
	if site == nil {
		return nil
	}
	text := fmt.Sprintf("%s passes %s, of type %s, for the parameter %s, of type %s", siteText(site), m.Argument, m.ArgumentType, m.Parameter, m.ParameterType)
	told := fmt.Sprintf("%s called the function with %s in place of a %s", siteText(site), valueText(value), m.ParameterType)
	return &evidence.Cause{Kind: evidence.CauseBadValue, Basis: evidence.BasisType, Variable: m.Parameter, Site: site, Proof: evidence.Replayed, Summary: text,
		Story: []evidence.CauseStep{x.step(told, site)}}
}
