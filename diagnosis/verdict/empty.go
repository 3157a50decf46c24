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

// ofNoElements makes leads of the causes of a null pointer where that may be right, as the pointer to no elements, and the access one too
// many: which of the two is wrong is not computed. What let the access happen is the first lead.
func (w *work) ofNoElements() {
	f, x := &w.Case.Failure, w.exact
	if f.Kind != evidence.NullPointer && f.Kind != evidence.NearNullPointer || x.trace == nil || !x.failed() {
		return
	}
	wanted := func(c evidence.Cause) bool {
		return c.Kind == evidence.CauseBadValue && c.Proof != evidence.Proved && c.Open == "" && c.Interleaving == nil
	}
	if len(w.Passing) > 0 || !slices.ContainsFunc(w.out.Causes, wanted) {
		return // the difference from a run that passes tells that null is bad
	}
	excess, ok := provenance.Empty(x.trace, x.program, x.last())
	if !ok {
		return
	}
	for i := range w.out.Causes {
		if c := &w.out.Causes[i]; wanted(*c) {
			c.Open = evidence.OpenEmpty
		}
	}
	site := x.site(excess.PC)
	if site == nil {
		return
	}
	lead := evidence.Cause{Kind: evidence.CauseBadValue, Site: site, Proof: evidence.Replayed, Open: evidence.OpenEmpty,
		Summary: fmt.Sprintf("the condition at %s let element 0 pass, with a limit of 0", siteText(site))}
	if excess.Size > 0 {
		lead.Summary = fmt.Sprintf("%s made a size of %d of one of 0", siteText(site), excess.Size)
	}
	lead.Story = []evidence.CauseStep{x.step(lead.Summary, site)}
	w.out.Causes = append([]evidence.Cause{lead}, w.out.Causes...)
}

// unasked reports whether a function that hands out memory returned null without having asked the C library for any, on the way that it
// took: what it was asked for was nothing.
func (w *work) unasked(in staticscan.Input, course *staticscan.Course, out *returned) bool {
	if len(out.returns) == 0 {
		return false
	}
	code, entry := w.functionCode(out.returns[0])
	insts, _ := x86.Function(code, uint64(entry))
	const most = 64 // calls
	calls, asks := 0, false
	for i := range insts {
		if insts[i].Flow != x86.FlowCall && insts[i].Flow != x86.FlowJump {
			continue
		}
		if calls++; calls > most {
			return false
		}
		pc := evidence.Addr(insts[i].PC)
		if !w.callsAllocator(in, pc) {
			continue
		}
		asks = true
		if slices.ContainsFunc(course.Steps, func(s staticscan.Taken) bool { return s.Registers.PC() == pc }) {
			return false
		}
	}
	return asks
}

// callsAllocator reports whether an instruction calls a function by which the C library hands out memory.
func (w *work) callsAllocator(in staticscan.Input, pc evidence.Addr) bool {
	var regs image.Registers
	regs.Set(image.RIP, uint64(pc))
	in.Frames = []unwind.Frame{{Kind: evidence.Physical, Registers: regs, Lookup: image.AtInstruction}}
	call, ok := staticscan.CallOf(in, 0)
	return ok && allocators[libraryName(call.Library)]
}
