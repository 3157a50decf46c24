package reports

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

// schedule lists the preemptions that replays need to fail. They are often the bug.
func schedule(s *evidence.Schedule) []block {
	if s == nil {
		return nil
	}
	needed := 0
	for i := range s.Preemptions {
		if s.Preemptions[i].Needed() {
			needed++
		}
	}
	var text string
	switch n := len(s.Preemptions); {
	case needed < n && n == 1:
		text = "replays fail as recorded with this preemption"
	case needed < n:
		text = fmt.Sprintf("replays fail as recorded with these %d preemptions", n)
	case n == 1:
		text = "this preemption is needed for the failure: without it the replay does not fail"
	default:
		text = fmt.Sprintf("these %d preemptions are needed for the failure: without any one of them the replay does not fail", n)
	}
	text += " (found by " + s.By
	if s.Attempts > 0 {
		text += " in " + wording.Count(s.Attempts, "attempt")
	}
	text += ")"
	lines := verbatim{}
	for i := range s.Preemptions {
		lines = append(lines, preemptionLines(&s.Preemptions[i], i)...)
	}
	return []block{heading{text: "The order that makes it fail"}, prose{say(plain, text)}, lines}
}

func preemptionLines(p *evidence.Preemption, i int) verbatim {
	where := "waits right before"
	if p.Behind != "" {
		where = "waits after " + p.Behind
	}
	first := say(strong, fmt.Sprintf("%d. ", i+1)).and(plain, p.Thread.Label()+" "+where)
	if p.Site != nil {
		joint := " "
		if p.Behind != "" {
			joint = " in "
		}
		first = append(first.and(plain, joint), shortSite(*p.Site)...)
	}
	if p.Arrival > 1 {
		first = first.and(plain, fmt.Sprintf(", when it gets there for the %s time", wording.Ordinal(p.Arrival)))
	}
	list := verbatim{first, untilLine(p)}
	if p.Runs > 0 {
		list = append(list, say(faint, fmt.Sprintf("   without it %d of %s failed as recorded", p.Failed, wording.Count(p.Runs, "replay"))))
	}
	return list
}

// untilLine says what the thread waits for.
func untilLine(p *evidence.Preemption) line {
	switch {
	case p.Last == "":
		return say(plain, fmt.Sprintf("   until event %d of all is done", p.Until))
	case p.LastThread.Number == p.Thread.Number: // the event is the thread's own, after the preemption
		return say(plain, fmt.Sprintf("   and lets the others run first, to event %d of all", p.Until))
	}
	l := say(plain, fmt.Sprintf("   until %s has done %s", p.LastThread.Label(), p.Last))
	if p.LastSite != nil {
		l = append(l.and(plain, " in "), shortSite(*p.LastSite)...)
	}
	return l.and(faint, fmt.Sprintf(" (event %d of all)", p.Until))
}

// shortSite is a place without its module.
func shortSite(s evidence.Site) line {
	s.Module = ""
	return siteLine(s)
}
