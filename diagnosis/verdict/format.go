package verdict

import (
	"fmt"
	"strings"

	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
	"diagnose/flow"
)

// unpassed names the call of a function of the printf family whose format is no constant and takes an argument that the call does not
// have. Where the format's first conversion came from is told with it.
func (t *tracedCauses) unpassed() bool {
	x, f := t.exact, t.in.Case.Failure.Format
	if f == nil || x.handled != nil {
		return false
	}
	taken := general(f.Text)
	if taken == 0 {
		return false
	}
	if err := x.record(t.progress.ctx, t.in.Image, t.progress.say); err != nil || x.last() < 0 {
		return false
	}
	call, missing := provenance.Unpassed(x.trace, x.program, x.last(), f.Argument+1, f.Argument+taken)
	if !missing {
		return false
	}
	site := x.site(x.trace.Step(call).PC)
	if site == nil || f.Site == nil || site.File != f.Site.File || site.Line != f.Site.Line {
		return false
	}
	text := fmt.Sprintf("%s calls %s with a format that is no constant, and it takes an argument that the call does not have", siteText(site), f.Function)
	cause := evidence.Cause{Kind: evidence.CauseBadValue, Basis: evidence.BasisType, Variable: f.Variable, Site: site, Proof: evidence.Replayed, Summary: text}
	if at := strings.IndexByte(f.Text, '%'); at >= 0 {
		way := provenance.Value(x.trace, x.program, flow.Memory(f.Addr+evidence.Addr(at), 1), call)
		if cause.Story = x.story(way); way.End == provenance.Input {
			cause.Kind = evidence.CauseBadInput
		}
	}
	cause.Story = append(cause.Story, x.step(fmt.Sprintf("%s called %s with the format", siteText(site), f.Function), site))
	t.out.Causes = append(t.out.Causes, cause)
	return true
}

// general counts the arguments of a format that come in general registers: those of conversions to other than floating-point numbers, and
// of widths and precisions that are arguments (ISO C 7.23.6.1). A format that numbers its arguments has none that are counted.
func general(format string) (count int) {
	for {
		_, rest, found := strings.Cut(format, "%")
		if !found || rest == "" {
			return count
		}
		end := strings.IndexAny(rest, "%diouxXcspneEfFgGaAmCS")
		if end < 0 || strings.Contains(rest[:end], "$") {
			return count
		}
		count += strings.Count(rest[:end], "*")
		if !strings.ContainsRune("%eEfFgGaAm", rune(rest[end])) {
			count++
		}
		format = rest[end+1:]
	}
}
