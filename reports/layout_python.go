package reports

import (
	"fmt"
	"slices"

	"diagnose/evidence"
)

// pythonLines are the frames of Python code of the threads of a group.
func pythonLines(c *evidence.Case, g *evidence.ThreadGroup) (lines verbatim) {
	for i := range c.Python {
		s := &c.Python[i]
		shared := slices.DeleteFunc(slices.Clone(s.Threads), func(t evidence.ThreadRef) bool {
			return !slices.ContainsFunc(g.Threads, func(r evidence.ThreadRef) bool { return r.TID == t.TID })
		})
		if len(shared) == 0 {
			continue
		}
		title := "Python frames"
		if len(shared) < len(g.Threads) {
			title += " of thread " + numberRanges(shared)
		}
		lines = append(lines, say(strong, title).and(faint, proofMark(s.Proof)))
		for _, f := range s.Frames {
			l := say(plain, "  "+f.Function).and(faint, " in "+f.File)
			if f.Line > 0 {
				l = say(plain, "  "+f.Function).and(faint, fmt.Sprintf(" at %s:%d", f.File, f.Line))
			}
			lines = append(lines, l)
		}
		if s.Stopped != "" {
			lines = append(lines, say(caveat, "  the frames end here: "+s.Stopped))
		}
	}
	return lines
}
