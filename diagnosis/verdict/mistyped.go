package verdict

import (
	"fmt"
	"slices"

	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/x86"
	"diagnose/staticscan"
)

// mostCalls is how many calls of the failing thread's stack are looked at, from the failing function outwards.
const mostCalls = 4

// mistyped names the call that handed over a value of another type than the function expects, if the failing instruction's address was
// made of it: arguments that are swapped, a number for a pointer. The types say so, whatever the value is.
func (t *tracedCauses) mistyped() bool {
	x, f := t.exact, &t.in.Case.Failure
	damaged := slices.ContainsFunc(t.in.Case.Findings, func(f evidence.Finding) bool { return findingKinds[f.Kind] != "" })
	if damaged || t.in.Process == nil || x.handled != nil || f.Fault == nil && f.Kind != evidence.DivisionByZero {
		return false
	}
	thread := t.in.Process.FailingThread()
	if thread == nil {
		return false
	}
	const frames = 64
	in := staticscan.Input{Process: t.in.Process, Thread: thread, Frames: unwind.New(t.in.Process).Walk(thread, frames).Frames}
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
	if err := x.record(t.progress.ctx, t.in.Image, t.progress.say); err != nil || !x.failed() {
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
			if cause := x.mistypedCause(m, x.trace.Step(call).PC, value); cause != nil {
				t.out.Causes = append(t.out.Causes, *cause)
				return true
			}
		}
	}
	return false
}

// passedOn is as mistyped, for a call on the way of a bad value: its function stored what it was handed over, and may have returned.
func (t *tracedCauses) passedOn(way *provenance.Way) *evidence.Cause {
	x := t.exact
	for _, a := range way.Arguments(x.trace, x.program) {
		if a.Call+1 >= x.trace.Len() {
			continue
		}
		frames := []unwind.Frame{t.frameAt(a.Call+1, 0), t.frameAt(a.Call, x.trace.Step(a.Call).Inst.Len)}
		in := staticscan.Input{Process: t.in.Process, Thread: t.in.Process.FailingThread(), Frames: frames}
		for _, m := range staticscan.MistypedArguments(in, 1) {
			value := x.trace.Register(a.Call, m.Register)
			if m.Register == a.Register && !(m.Number && x.program.Mapped(evidence.Addr(value))) {
				return x.mistypedCause(&m, x.trace.Step(a.Call).PC, value)
			}
		}
	}
	return nil
}

// frameAt is the frame of a thread before a step; returned: as many bytes after it, to which a call that the step makes returns.
func (t *tracedCauses) frameAt(n, returned int) unwind.Frame {
	var thread image.Thread
	for r := x86.RAX; r.General(); r++ {
		thread.Registers.Set(image.Register(r), t.exact.trace.Register(n, r))
	}
	pc := t.exact.trace.Step(n).PC
	thread.Registers.Set(image.RIP, uint64(pc))
	f := unwind.Frame{Registers: thread.Registers}
	if frames := unwind.New(t.in.Process).Walk(&thread, 1).Frames; len(frames) > 0 {
		f = frames[0]
	}
	if returned > 0 {
		f.Registers.Set(image.RIP, uint64(pc)+uint64(returned))
		f.Lookup = image.ReturnAddress
	}
	return f
}

func (x *teller) mistypedCause(m *staticscan.Mistyped, call evidence.Addr, value uint64) *evidence.Cause {
	site := x.site(call)
	if site == nil {
		return nil
	}
	text := fmt.Sprintf("%s passes %s, of type %s, for the parameter %s, of type %s", siteText(site), m.Argument, m.ArgumentType, m.Parameter, m.ParameterType)
	told := fmt.Sprintf("%s called the function with %s in place of a %s", siteText(site), valueText(value), m.ParameterType)
	return &evidence.Cause{Kind: evidence.CauseBadValue, Basis: evidence.BasisType, Variable: m.Parameter, Site: site, Proof: evidence.Replayed, Summary: text,
		Story: []evidence.CauseStep{x.step(told, site)}}
}
