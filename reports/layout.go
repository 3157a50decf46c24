package reports

import (
	"fmt"
	"path"
	"strings"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

// layout builds the document of a case, in reading order: the headline, the failure, its cause
// according to the recordings, the evidence for that, the findings, the stacks, the suspects.
// Limits that may falsify the rest come first, the others last.
func layout(c *evidence.Case, opts Options) []block {
	var d []block
	h := headlineOf(c)
	d = append(d, prose{h.lead()})
	d = append(d, h.symptom()...)
	d = append(d, interrupted(c.Diagnosis)...)
	d = append(d, severeLimits(c.Limits)...)
	if c.Diagnosis != nil {
		d = append(d, severeLimits(c.Diagnosis.Coverage.Limits)...)
	}
	d = append(d, summary(c, opts))
	d = append(d, run(c.Run)...)
	d = append(d, lastWords(c.Ending)...)
	d = append(d, causes(c)...)
	d = append(d, instruction(c.Failure.Instruction)...)
	d = append(d, source(c.Failure.Source)...)
	d = append(d, origin(c.Failure.Origin)...)
	d = append(d, check(c.Failure.Check)...)
	d = append(d, recursion(c.Failure.Recursion)...)
	d = append(d, findings("Findings", c.Findings)...)
	d = append(d, stacks(c)...)
	d = append(d, goroutines(c.Goroutines)...)
	d = append(d, races(c.Races)...)
	d = append(d, scan(c.Scan, c.Failure.Kind)...)
	d = append(d, coverage(c.Diagnosis)...)
	d = append(d, registers(c.Registers)...)
	d = append(d, otherLimits(c.Limits)...)
	return append(d, next(c)...)
}

func interrupted(d *evidence.Diagnosis) []block {
	if d == nil || !d.Interrupted {
		return nil
	}
	return []block{facts{{"interrupted", say(caveat, "the report has the findings until then")}}}
}

func severeLimits(limits []evidence.Limit) []block {
	var list facts
	for _, l := range limits {
		if l.Severe {
			list = append(list, fact{"WARNING", limitLine(l)})
		}
	}
	if list == nil {
		return nil
	}
	return []block{list}
}

func otherLimits(limits []evidence.Limit) []block {
	var list verbatim
	for _, l := range limits {
		if !l.Severe {
			list = append(list, say(plain, "- ").and(plain, limitLine(l).String()))
		}
	}
	if list == nil {
		return nil
	}
	return []block{heading{text: "Limits of this analysis"}, list}
}

func limitLine(l evidence.Limit) line {
	if l.Code == "" && l.Subject != "" { // of an older document
		return say(caveat, l.Subject+": "+l.Text)
	}
	return say(caveat, l.Text)
}

func summary(c *evidence.Case, opts Options) facts {
	f := &c.Failure
	list := facts{{"kind", say(strong, string(f.Kind)).and(faint, proofMark(f.Proof))}}
	add := func(name string, l line) {
		if l.String() != "" {
			list = append(list, fact{name, l})
		}
	}
	if f.Message != "" && !f.MessageInSentence {
		add("message", say(strong, f.Message))
	}
	add("exception", exceptionLine(f.Exception))
	add("signal", signalLine(f.Signal, c.Program.PID))
	if f.Fault != nil {
		add("address", say(strong, f.Fault.Addr.String()).and(plain, " is "+f.Fault.Place.Text).
			and(plain, accessText(f.Fault)).and(faint, proofMark(f.Fault.Proof)))
	}
	if f.Site != nil {
		where := siteLine(*f.Site)
		if f.SiteProof != "" {
			where = where.and(faint, ", the last line before it returned"+proofMark(f.SiteProof))
		}
		add("where", where)
	}
	list = append(list, expectedFacts(f)...)
	add("severity", severityLine(c.Severity))
	add("suppressed", suppressionLine(c.Suppression))
	add("program", programLine(&c.Program))
	if opts.Version != "" {
		add("reported by", say(faint, "diagnose "+opts.Version))
	}
	return list
}

// accessText leaves out unknown facts: if an instruction could not be read, neither the kind of
// access nor the number of bytes is known.
func accessText(f *evidence.Fault) string {
	var parts []string
	if f.Access != "" {
		parts = append(parts, string(f.Access))
	}
	if f.Size > 0 {
		parts = append(parts, wording.Count(f.Size, "byte"))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, " of ") + ")"
}

func proofMark(p evidence.Proof) string { return "  [" + string(p) + "]" }

func exceptionLine(e *evidence.Exception) line {
	if e == nil {
		return nil
	}
	l := say(strong, e.Type)
	switch {
	case e.What != "" && e.Type == "":
		l = say(strong, e.What)
	case e.What != "":
		l = l.and(plain, ": ").and(strong, e.What)
	case e.WhatUnavailable != "":
		l = l.and(faint, " (its text is not known: "+e.WhatUnavailable+")")
	}
	return l.and(faint, proofMark(e.Proof))
}

func signalLine(s *evidence.Signal, pid int) line {
	if s == nil {
		return nil
	}
	l := say(plain, s.Name)
	if s.CodeName != "" {
		l = l.and(plain, " ("+s.CodeName+")")
	}
	switch {
	case s.SenderPID != 0 && s.SenderPID == pid:
		l = l.and(plain, ", sent by the process itself")
	case s.SenderPID != 0:
		l = l.and(plain, fmt.Sprintf(", sent by process %d of user %d", s.SenderPID, s.SenderUID))
	}
	return l
}

func siteLine(s evidence.Site) line {
	l := say(name, functionOf(s))
	if s.File != "" {
		l = l.and(plain, " at ").and(place, position(s))
	}
	if s.Module != "" {
		l = l.and(faint, fmt.Sprintf("  %s+%v", s.Module, s.ModuleOffset))
	}
	return l
}

func functionOf(s evidence.Site) string {
	if s.Function == "" {
		return "??"
	}
	return shortArguments(evidence.ShortName(s.Function))
}

// placeName is functionOf for a sentence, which names the place in no other way. Without a function
// it is MODULE+OFFSET.
func placeName(s evidence.Site) string {
	if s.Function == "" && s.Module != "" {
		return fmt.Sprintf("%s+%v", path.Base(s.Module), s.ModuleOffset)
	}
	return functionOf(s)
}

// position is FILE:LINE:COLUMN, as much as is known.
func position(s evidence.Site) string {
	text := s.File
	if s.Line > 0 {
		text += fmt.Sprintf(":%d", s.Line)
		if s.Column > 0 {
			text += fmt.Sprintf(":%d", s.Column)
		}
	}
	return text
}

func programLine(p *evidence.Program) line {
	what := p.Args
	if what == "" {
		what = p.Exe
	}
	l := say(plain, what)
	if p.PID != 0 {
		l = l.and(plain, fmt.Sprintf(" (process %d, %s)", p.PID, wording.Count(p.Threads, "thread")))
	}
	if p.Path != "" {
		l = l.and(faint, ", core "+p.Path)
	}
	if p.BuildID != "" {
		l = l.and(faint, ", build-id "+p.BuildID)
	}
	return l
}

func instruction(i *evidence.Instruction) []block {
	if i == nil {
		return nil
	}
	lines := verbatim{say(faint, i.PC.String()+":  ").and(strong, i.Text)}
	for _, o := range i.Operands {
		if o.Access != "" || o.Address != nil { // an immediate says no more than the text
			lines = append(lines, operandLine(o))
		}
	}
	return []block{heading{text: "Failing instruction"}, lines}
}

func operandLine(o evidence.Operand) line {
	l := say(plain, fmt.Sprintf("    %-24s %-10s ", o.Text, o.Access))
	if o.Address != nil {
		l = l.and(plain, "at "+o.Address.String()+" ")
	}
	if o.Symbol != "" {
		l = l.and(name, o.Symbol+" ")
	}
	l = l.and(plain, "= "+valueText(o.Value))
	if o.Address == nil { // the line has the register's value already
		return l
	}
	for i, r := range o.Registers {
		separator := ", "
		if i == 0 {
			separator = "   with "
		}
		l = l.and(faint, separator+r.Name+" = "+r.Value.String())
	}
	return l
}

func source(s *evidence.Source) []block {
	if s == nil || len(s.Lines) == 0 {
		return nil
	}
	title := heading{"Source", Clean(s.File)}
	if s.Stale {
		title.of += " (newer than the program: lines may have moved)"
	}
	var lines verbatim
	for _, x := range s.Lines {
		mark, st := "   ", faint
		if x.Failed {
			mark, st = "=> ", strong
		}
		lines = append(lines, say(alarm, mark).and(faint, fmt.Sprintf("%5d  ", x.Number)).and(st, expandTabs(x.Text)))
	}
	return []block{title, lines}
}

// expandTabs keeps the indentation of source lines: clean would turn their tabs into escapes.
func expandTabs(text string) string {
	const tab = 4
	var b strings.Builder
	column := 0
	for _, r := range text {
		if r != '\t' {
			b.WriteRune(r)
			column++
			continue
		}
		n := tab - column%tab
		b.WriteString(strings.Repeat(" ", n))
		column += n
	}
	return b.String()
}

func origin(steps []evidence.OriginStep) []block {
	if len(steps) == 0 {
		return nil
	}
	return []block{heading{text: "Where the bad value came from"}, originLines(steps)}
}

func originLines(steps []evidence.OriginStep) verbatim {
	var lines verbatim
	for i, s := range steps {
		l := say(plain, fmt.Sprintf("%d. ", i+1)).and(plain, s.Text)
		if s.Site != nil && s.Site.File != "" {
			l = l.and(plain, "  at ").and(place, position(*s.Site))
		}
		if s.Instruction != "" {
			l = l.and(faint, "  ("+s.Instruction+")")
		}
		lines = append(lines, l.and(faint, proofMark(s.Proof)))
	}
	return lines
}

func recursion(r *evidence.Recursion) []block {
	if r == nil {
		return nil
	}
	atLeast := ""
	if r.AtLeast {
		atLeast = "at least "
	}
	lines := verbatim{say(plain, fmt.Sprintf("%s%d frames, %d KiB of stack; this cycle was found %s%s:",
		atLeast, r.Depth, r.StackBytes>>10, atLeast, wording.Count(r.Turns, "time")))}
	for _, s := range r.Cycle {
		lines = append(lines, append(say(plain, "  -> "), siteLine(s)...))
	}
	return []block{heading{text: "Recursion"}, lines}
}

func findings(title string, list []evidence.Finding) []block {
	if len(list) == 0 {
		return nil
	}
	d := []block{heading{text: title}}
	for i, f := range list {
		if i > 0 {
			d = append(d, gap{})
		}
		d = append(d, verbatim{say(alarm, f.Summary).and(faint, proofMark(f.Proof))})
		var details facts
		for _, x := range f.Facts {
			details = append(details, fact{Clean(x.Name), say(plain, x.Text)})
		}
		for _, w := range f.Wait {
			details = append(details, fact{Clean(w.Waiter.Label()), waitLine(w)})
		}
		details = append(details, objectFacts(&f)...)
		if details != nil {
			d = append(d, details)
		}
		d = append(d, dump(&f)...)
		d = append(d, calls(&f)...)
	}
	return d
}

func waitLine(w evidence.WaitEdge) line {
	l := say(plain, "waits for "+string(w.What)+" ")
	switch {
	case w.What == evidence.WaitThreadExit && w.Owner != nil:
		l = say(plain, "waits for the end of ").and(strong, w.Owner.Label())
	case w.Name != "":
		l = l.and(name, w.Name).and(plain, " "+w.Object.String())
	default:
		l = l.and(plain, w.Object.String())
	}
	if w.Owner != nil && w.What != evidence.WaitThreadExit {
		l = l.and(plain, ", held by ").and(strong, w.Owner.Label())
	}
	if w.Site != nil {
		l = l.and(plain, ", asked for in ").and(name, functionOf(*w.Site)).and(plain, " at ").and(place, position(*w.Site))
	}
	return l
}

func registers(list []evidence.Register) []block {
	if len(list) == 0 {
		return nil
	}
	const perLine = 4
	var lines verbatim
	for len(list) > 0 {
		n := min(perLine, len(list))
		var l line
		for i, r := range list[:n] {
			value := r.Value.String()
			if i < n-1 {
				value = fmt.Sprintf("%-20s", value)
			}
			l = l.and(faint, fmt.Sprintf("%-4s", r.Name)).and(plain, value)
		}
		lines = append(lines, l)
		list = list[n:]
	}
	return []block{heading{text: "Registers of the failing thread"}, lines}
}
