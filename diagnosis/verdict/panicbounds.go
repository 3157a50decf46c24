package verdict

import (
	"fmt"

	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image"
	"diagnose/image/x86"
)

// boundsPanic is the function of Rust's core library that code calls whose index is not below the length: its first argument is the
// index, the second the length (library/core/src/panicking.rs, panic_bounds_check; lang item of that name).
const boundsPanic = "core::panicking::panic_bounds_check"

// panicked reports whether the failure is a panic of Rust's, reported or with a core.
func panicked(c *evidence.Case) bool {
	return c.Failure.Kind == evidence.RustPanic || rustReport(c) != nil
}

// bounds tells where the index came from with which a program panicked, and where the length did. It reports false if the program did not,
// or a trace does not show it.
func (t *tracedCauses) bounds() bool {
	if !panicked(t.in.Case) {
		return false
	}
	x, thread := t.exact, t.exact.failing()
	if m := rustReport(t.in.Case); m != nil {
		x, thread = x.until(m.Moment), m.Moment.Thread
		if err := x.tracing(t.progress.ctx, t.in.Image, t.progress.say, (*tracing).before); err != nil {
			return false
		}
	} else if x.record(t.progress.ctx, t.in.Image, t.progress.say) != nil {
		return false
	}
	n := x.boundsCall(thread)
	if n < 0 {
		return false
	}
	index := x.argument(n, x86.RDI, "the index")
	length := x.argument(n, x86.RSI, "the length")
	if length != nil && length.Open == "" {
		length.Open = evidence.OpenDecision // a good length fits a bad index
	}
	for _, cause := range []*evidence.Cause{index, length} {
		if cause != nil {
			t.out.Causes = append(t.out.Causes, *cause)
		}
	}
	return index != nil || length != nil
}

// argument tells where an argument came from of the function that is entered at step n; nil: it is not known.
func (x *exact) argument(n int, register x86.Reg, name string) *evidence.Cause {
	way := provenance.Value(x.trace, x.program, flow.Register(x.trace.Step(n).Thread, register, wordSize), n)
	if way.End == provenance.Initial {
		return nil
	}
	cause := x.cause(&victim{kind: evidence.CauseBadValue, name: name}, way)
	if way.End == provenance.Undecided { // it was computed of several values
		if len(way.Links) == 0 {
			return nil
		}
		site := x.site(way.Links[len(way.Links)-1].PC)
		if site == nil {
			return nil
		}
		cause = &evidence.Cause{Kind: evidence.CauseBadValue, Basis: evidence.BasisStore, Variable: name, Site: site, Proof: evidence.Replayed, Open: evidence.OpenOrigin, Story: x.story(way)}
	}
	if cause != nil {
		cause.Summary = fmt.Sprintf("%s gave %s its value %s", siteText(cause.Site), name, valueText(x.trace.Register(n, register)))
	}
	return cause
}

// boundsCall is the step at which boundsPanic was entered last by a thread, at its first instruction; -1: the trace has none.
func (x *window) boundsCall(thread uint32) int {
	if x.trace == nil || x.program == nil {
		return -1
	}
	for n := x.trace.Last(thread); n >= 0; n = x.trace.Previous(n) {
		call := x.trace.Previous(n)
		if call < 0 {
			break
		}
		s := x.trace.Step(call)
		if s.Inst == nil || s.Inst.Flow != x86.FlowCall || s.Library {
			continue
		}
		if image.CanonicalName(x.program.Function(x.trace.Step(n).PC)) == boundsPanic {
			return n
		}
	}
	return -1
}
