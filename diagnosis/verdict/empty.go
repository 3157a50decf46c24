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
func (t *tracedCauses) ofNoElements() {
	f, x := &t.in.Case.Failure, t.exact
	if f.Kind != evidence.NullPointer && f.Kind != evidence.NearNullPointer || x.trace == nil || !x.failed() {
		return
	}
	wanted := func(c evidence.Cause) bool {
		return c.Kind == evidence.CauseBadValue && c.Proof != evidence.Proved && c.Open == "" && c.Interleaving == nil
	}
	if len(t.in.Passing) > 0 || !slices.ContainsFunc(t.out.Causes, wanted) {
		return // the difference from a run that passes tells that null is bad
	}
	excess, ok := provenance.Empty(x.trace, x.program, x.last())
	if !ok {
		return
	}
	for i := range t.out.Causes {
		if c := &t.out.Causes[i]; wanted(*c) {
			c.Open = evidence.OpenEmpty
		}
	}
	site := x.site(excess.PC)
	if site == nil {
		return
	}
	lead := evidence.Cause{Kind: evidence.CauseBadValue, Basis: evidence.BasisStore, Site: site, Proof: evidence.Replayed, Open: evidence.OpenEmpty,
		Summary: fmt.Sprintf("the condition at %s let element 0 pass, with a limit of 0", siteText(site))}
	if excess.Size > 0 {
		lead.Summary = fmt.Sprintf("%s made a size of %d of one of 0", siteText(site), excess.Size)
	}
	lead.Story = []evidence.CauseStep{x.step(lead.Summary, site)}
	t.out.Causes = append([]evidence.Cause{lead}, t.out.Causes...)
}

// unasked reports whether a function returned null because an argument was 0, of which it makes the size that it asks the C library
// for, and asked for none on the way that it took: what it was asked for was nothing.
func unasked(p *image.Process, in staticscan.Input, course *staticscan.Course, out *returned) bool {
	if len(out.returns) == 0 {
		return false
	}
	code, entry := functionCode(p, out.returns[0])
	insts, _ := x86.Function(code, uint64(entry))
	const most = 64 // calls
	calls, asks := 0, false
	for i := range insts {
		if insts[i].Flow != x86.FlowCall && !(insts[i].Flow == x86.FlowJump && (!insts[i].HasTarget || !within(&insts[i], insts))) {
			continue
		}
		if calls++; calls > most {
			return false
		}
		pc := evidence.Addr(insts[i].PC)
		size, ok := askedFor(in, pc, out.ledBy.Zero)
		if !ok {
			continue
		}
		asks = asks || size
		if slices.ContainsFunc(course.Steps, func(s staticscan.Taken) bool { return s.Registers.PC() == pc }) {
			return false
		}
	}
	return asks
}

// within reports whether a jump leads to one of a function's instructions, as they lie in memory.
func within(jump *x86.Inst, insts []x86.Inst) bool {
	return jump.Target >= insts[0].PC && jump.Target <= insts[len(insts)-1].PC
}

// askedFor reports whether an instruction calls a function by which the C library hands out memory, and whether a size that it is handed
// was made of an argument of the function that calls it.
func askedFor(in staticscan.Input, pc evidence.Addr, argument image.Register) (size, asks bool) {
	var regs image.Registers
	regs.Set(image.RIP, uint64(pc))
	in.Frames = []unwind.Frame{{Kind: evidence.Physical, Registers: regs, Lookup: image.AtInstruction}}
	call, ok := staticscan.CallOf(in, 0)
	if !ok {
		return false, false
	}
	sizes, asks := allocators[libraryName(call.Library)]
	return slices.ContainsFunc(sizes, func(n int) bool { return staticscan.ArgumentMadeOf(in, 0, n, argument) }), asks
}
