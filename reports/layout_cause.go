package reports

import (
	"fmt"
	"path"
	"strings"
	"time"

	"diagnose/evidence"
)

// causes are what the recordings tell, the likeliest first.
func causes(d *evidence.Diagnosis) []block {
	if d == nil {
		return nil
	}
	if len(d.Causes) == 0 {
		return append([]block{heading{"Cause"}, prose{say(caveat, "unknown: "+unknownText(d))}}, excluded(d.Excluded)...)
	}
	var blocks []block
	for i := range d.Causes {
		blocks = append(blocks, cause(&d.Causes[i], i)...)
	}
	return append(blocks, excluded(d.Excluded)...)
}

func unknownText(d *evidence.Diagnosis) string {
	if d.Coverage.Passes == 0 {
		return "no pass over the recording was made"
	}
	return fmt.Sprintf("%s over the recording found nothing that explains the failure", plural(d.Coverage.Passes, "replay"))
}

func cause(c *evidence.Cause, rank int) []block {
	title := "Cause"
	if rank > 0 {
		title = fmt.Sprintf("Less likely cause %d", rank+1)
	}
	d := []block{heading{title}, prose{say(alarm, c.Summary).and(faint, proofMark(c.Proof))}}
	list := facts{{"kind", say(strong, string(c.Kind))}}
	if c.Variable != "" {
		list = append(list, fact{"variable", say(name, c.Variable)})
	}
	if c.Site != nil {
		list = append(list, fact{"where", siteLine(*c.Site)})
	}
	if c.Object != nil {
		list = append(list, fact{"object", say(plain, objectText(c.Object)+allocatedIn(c.Object))})
	}
	for i := range c.Experiments {
		list = append(list, fact{"experiment", experimentLine(&c.Experiments[i])})
	}
	d = append(d, list)
	d = append(d, story(c.Story)...)
	return append(d, interleaving(c.Interleaving)...)
}

func experimentLine(e *evidence.Experiment) line {
	// Of a replay that did not come to an end "0 failed" would say too much.
	if e.Undecided != "" && e.Failed == 0 && e.Outcome == "" {
		return say(strong, e.What).and(caveat, ": it decides nothing: "+e.Undecided)
	}
	l := say(strong, e.What).and(plain, fmt.Sprintf(": %d of %s failed as recorded", e.Failed, plural(e.Runs, "replay")))
	if e.Outcome != "" {
		l = l.and(faint, " ("+e.Outcome+")")
	}
	switch {
	case e.Undecided != "":
		return l.and(caveat, "; this decides nothing: "+e.Undecided)
	case !e.Agrees():
		return l.and(caveat, "; this is not what the cause would do")
	}
	return l
}

func story(steps []evidence.CauseStep) []block {
	var d []block
	for i, s := range steps {
		lines := verbatim{say(strong, fmt.Sprintf("%d. ", i+1)).and(plain, s.Text).and(faint, proofMark(s.Proof))}
		if a := s.Access; a != nil {
			lines = append(lines, say(plain, "   ").and(plain, accessWords(a)).and(faint, "  at moment "+a.Moment.String()))
			lines = append(lines, stackLines(a.Stack)...)
		} else if s.Site != nil {
			lines = append(lines, append(say(plain, "   "), siteLine(*s.Site)...))
		}
		d = append(d, lines)
		d = append(d, sourceLines(s.Source)...)
	}
	return d
}

// sourceLines are those of a step, without a heading.
func sourceLines(s *evidence.Source) []block {
	blocks := source(s)
	if len(blocks) == 0 {
		return nil
	}
	return blocks[1:]
}

// accessWords is an access in a line: "thread 2 "worker" writes balance: 5 -> 7".
func accessWords(a *evidence.SeenAccess) string {
	verb := map[evidence.AccessKind]string{evidence.Read: "reads", evidence.Write: "writes", evidence.ReadWrite: "changes"}[a.Kind]
	if verb == "" {
		verb = "accesses"
	}
	text := fmt.Sprintf("%s %s %s", a.Thread.Label(), verb, a.Variable)
	switch {
	case a.Kind == evidence.Read && a.Old != "":
		text += ": " + a.Old
	case a.Old != "" && a.New != "":
		text += ": " + a.Old + " -> " + a.New
	case a.New != "":
		text += ": " + a.New
	}
	if a.Handler != "" {
		text += ", in the handler of " + a.Handler
	}
	if a.Call != "" {
		text += ", by the call " + a.Call
	}
	return text
}

func lockWords(locks []evidence.Lock) string {
	if len(locks) == 0 {
		return "no lock held"
	}
	var names []string
	for _, l := range locks {
		name := l.Name
		if name == "" {
			name = l.Address.String()
		}
		if l.Shared {
			name += " (shared)"
		}
		names = append(names, name)
	}
	return "holds " + strings.Join(names, ", ")
}

// interleaving shows the failing and the passing run side by side, in time
// order.
func interleaving(i *evidence.Interleaving) []block {
	if i == nil {
		return nil
	}
	list := facts{{"pattern", say(strong, string(i.Pattern)).and(plain, " of "+strings.Join(i.Variables, " and "))}}
	if i.Missing != "" {
		list = append(list, fact{"missing lock", say(strong, i.Missing)})
	}
	if i.Instead != "" {
		list = append(list, fact{"instead", say(plain, i.Instead)})
	}
	list = append(list, fact{"seen in", say(plain, fmt.Sprintf("%d of %s that failed and %d of %d that passed (%s %.2f)",
		i.FailingRuns, plural(i.FailingOf, "run"), i.PassingRuns, i.PassingOf, i.Measure, i.Score))})
	table := grid{header: []string{"#", "failing run", "passing run"}}
	for n := range max(len(i.Failing), len(i.Passing)) {
		row := []string{fmt.Sprint(n + 1), "", ""}
		if n < len(i.Failing) {
			row[1] = accessCell(&i.Failing[n])
		}
		if n < len(i.Passing) {
			row[2] = accessCell(&i.Passing[n])
		}
		table.rows = append(table.rows, row)
	}
	d := []block{list, table}
	for n := range i.Failing {
		a := &i.Failing[n]
		d = append(d, append(verbatim{say(strong, fmt.Sprintf("failing %d. ", n+1)).and(plain, accessWords(a)).
			and(faint, "  at moment "+a.Moment.String())}, stackLines(a.Stack)...))
	}
	return d
}

func accessCell(a *evidence.SeenAccess) string {
	text := accessWords(a)
	if a.Site != nil {
		text += " in " + functionOf(*a.Site)
		if a.Site.File != "" {
			text += fmt.Sprintf(" at %s:%d", path.Base(a.Site.File), a.Site.Line)
		}
	}
	return Clean(text + "; " + lockWords(a.Locks))
}

func excluded(list []evidence.Fact) []block {
	if len(list) == 0 {
		return nil
	}
	var f facts
	for _, x := range list {
		f = append(f, fact{Clean(x.Name), say(plain, x.Text)})
	}
	return []block{heading{"Looked at and ruled out"}, f}
}

// coverage says what the passes saw, and what they did not.
func coverage(d *evidence.Diagnosis) []block {
	if d == nil {
		return nil
	}
	c := &d.Coverage
	summary := fmt.Sprintf("%s over %s, %d accesses seen", plural(c.Passes, "replay"), d.Recording, c.Hits)
	if c.Lost > 0 {
		summary += fmt.Sprintf(", %d lost", c.Lost)
	}
	if c.Backend != "" {
		summary += ", by " + c.Backend
	}
	summary += fmt.Sprintf(", in %v; failing recordings %d, passing %d", time.Duration(c.Nanoseconds).Round(time.Millisecond), d.Failing, d.Passing)
	blocks := []block{heading{"What was traced"}, prose{say(plain, summary)}}
	if len(d.Watched) > 0 {
		table := grid{header: []string{"variable", "address", "bytes", "pass", "accesses"}}
		for _, w := range d.Watched {
			pass, hits := fmt.Sprint(w.Pass), fmt.Sprint(w.Hits)
			if w.Untraced != "" {
				pass, hits = "-", "not traced: "+w.Untraced
			} else if w.Lost > 0 {
				hits += fmt.Sprintf(" (%d lost)", w.Lost)
			}
			table.rows = append(table.rows, []string{Clean(w.Name), w.Address.String(), fmt.Sprint(w.Size), pass, hits})
		}
		blocks = append(blocks, table)
	}
	var limits verbatim
	for _, l := range c.Limits {
		limits = append(limits, say(caveat, "- "+l))
	}
	if limits != nil {
		blocks = append(blocks, limits)
	}
	return blocks
}
