package reports

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

// causes are the causes according to the recordings, the likeliest first.
func causes(c *evidence.Case) []block {
	d := c.Diagnosis
	if d == nil {
		return nil
	}
	if len(d.Causes) == 0 {
		return slices.Concat(unknown(d.Unknown), leads(d.Leads), schedule(d.Schedule), ruledOut(d))
	}
	var blocks []block
	for i := range d.Causes {
		blocks = append(blocks, cause(&d.Causes[i], i)...)
	}
	blocks = append(blocks, leads(d.Leads)...)
	blocks = append(blocks, schedule(d.Schedule)...)
	return append(blocks, ruledOut(d)...)
}

// unknown says why there is no cause, and how to continue.
func unknown(u *evidence.Unknown) []block {
	if u == nil {
		return []block{heading{text: "Cause"}, prose{say(caveat, "unknown")}}
	}
	d := []block{heading{text: "Cause"}, prose{say(caveat, "unknown: "+u.Why)}}
	var list facts
	for _, b := range u.Because {
		list = append(list, fact{"because", say(plain, b.Text)})
	}
	if u.Next != "" {
		list = append(list, fact{"next", say(strong, u.Next).and(plain, "  # "+u.NextWhy)})
	}
	if list == nil {
		return d
	}
	return append(d, list)
}

// leads are the ways of bad values that ended early.
func leads(list []evidence.Cause) (blocks []block) {
	for i := range list {
		title := "Where the bad value came from, as far as it was followed"
		switch {
		case list[i].Open == evidence.OpenUntested && list[i].Interleaving != nil:
			title = "An order of accesses that may explain it"
		case list[i].Open == evidence.OpenOtherWay:
			title = "Where the run went another way than runs that pass"
		case list[i].Open == evidence.OpenChanged:
			title = "A number that changed on the way"
		case list[i].Open == evidence.OpenApart:
			title = "A mistake that was seen on the way"
		case i > 0:
			title = fmt.Sprintf("Where another bad value came from (%d)", i+1)
		}
		blocks = append(blocks, told(title, caveat, &list[i])...)
	}
	return blocks
}

// openWords say why a way ended early.
var openWords = map[evidence.OpenEnd]string{
	evidence.OpenBound:    "after as many steps as --hops allows",
	evidence.OpenTime:     "the time was used up (--time)",
	evidence.OpenOrigin:   "where the value came from there is not known",
	evidence.OpenCall:     "what the call executed that returned the value is not known",
	evidence.OpenInput:    "it is input; whether that is wrong, or what the program made of it, is not known",
	evidence.OpenDecision: "the program had found something wrong there; what made that so is not known",
	evidence.OpenUntested: "no experiment decided whether the failure follows from the order, and the runs that pass are too few to tell",
	evidence.OpenOtherWay: "whether that is wrong, or right for another input, is not known",
	evidence.OpenApart:    "the run fails in the same way without that",
	evidence.OpenChanged:  "whether the program means the number to change there is not known",
	evidence.OpenFolded:   "the compiler computed the value there; a build with -O0 shows how it is made",
	evidence.OpenRestored: "the value was there before, as at the end of a list, and was put back; what should have taken its place is not known",
	evidence.OpenReused:   "the memory is used as two objects at once; which of them should not have it is not known",
	evidence.OpenEmpty:    "null may be right for no elements; whether the access was one too many is not known",
}

func cause(c *evidence.Cause, rank int) []block {
	title := "Cause"
	switch {
	case rank > 0 && c.Proof == evidence.Proved: // one may cause the other
		title = fmt.Sprintf("Cause %d, which is proved as well", rank+1)
	case rank > 0:
		title = fmt.Sprintf("Less likely cause %d", rank+1)
	}
	return told(title, alarm, c)
}

// told is a cause or a lead under its title.
func told(title string, summary style, c *evidence.Cause) []block {
	d := []block{heading{text: title}, prose{say(summary, c.Summary).and(faint, proofMark(c.Proof))}}
	list := facts{{"kind", say(strong, string(c.Kind))}}
	if words := openWords[c.Open]; words != "" {
		list = append(list, fact{"ends", say(caveat, words)})
	}
	if c.Variable != "" {
		list = append(list, fact{"variable", say(name, c.Variable)})
	}
	if c.Site != nil {
		list = append(list, fact{"where", siteLine(*c.Site)})
	}
	if c.Object != nil {
		list = append(list, fact{"object", say(plain, objectText(c.Object)+allocatedIn(c.Object))})
	}
	if c.Invalidated != nil {
		list = append(list, fact{"freed by", say(plain, invalidationText(c.Invalidated))})
	}
	for i := 0; i < len(c.Experiments); {
		n := 1
		for i+n < len(c.Experiments) && c.Experiments[i+n] == c.Experiments[i] {
			n++
		}
		l := experimentLine(&c.Experiments[i])
		if n > 1 {
			l = l.and(plain, fmt.Sprintf(" (%d experiments alike, each with another store)", n))
		}
		list = append(list, fact{"experiment", l})
		i += n
	}
	d = append(d, list)
	if c.Interleaving != nil { // its accesses are the story
		return append(d, interleaving(c.Interleaving)...)
	}
	return append(append(d, story(c.Story)...), compared(c.Compared)...)
}

// compared says where the values came from that a condition compared.
func compared(values []evidence.ComparedValue) []block {
	var d []block
	for i := range values {
		what := "a value"
		if v := values[i].Value; v != "" {
			what = v
		}
		where := ""
		if s := values[i].Site; s != nil && s.File != "" {
			where = fmt.Sprintf("at %s:%d ", path.Base(s.File), s.Line)
		}
		begin := "The condition " + where + "compared "
		if of := values[i].Of; of != "" {
			begin = of + " was made of "
		}
		d = append(d, prose{say(plain, begin).and(strong, what).and(plain, ", which came this way:")})
		d = append(d, story(values[i].Story)...)
	}
	return d
}

func experimentLine(e *evidence.Experiment) line {
	// Of a replay that did not reach an end "0 failed" would say too much.
	if e.Undecided != "" && e.Failed == 0 && e.Outcome == "" {
		return say(strong, e.What).and(caveat, ": it decides nothing: "+e.Undecided)
	}
	l := say(strong, e.What).and(plain, fmt.Sprintf(": %d of %s failed as recorded", e.Failed, wording.Count(e.Runs, "replay")))
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

// mostSteps are the steps of a story that a report shows, of which so many are the last ones.
const (
	mostSteps = 8
	lastSteps = 5
)

// story shows the steps, those in the middle of a long one only by their number: documents have them all.
func story(steps []evidence.CauseStep) []block {
	parts := storySteps(steps)
	n := len(parts)
	if n <= mostSteps {
		return slices.Concat(parts...)
	}
	first := mostSteps - lastSteps
	left := verbatim{say(faint, fmt.Sprintf("   ... %s, which --format json has ...", wording.Count(n-mostSteps, "more step")))}
	return slices.Concat(slices.Concat(parts[:first]...), []block{left}, slices.Concat(parts[n-lastSteps:]...))
}

// storySteps are the steps of a story, each with what belongs to it.
func storySteps(steps []evidence.CauseStep) (parts [][]block) {
	for i := 0; i < len(steps); i++ {
		var d []block
		s := &steps[i]
		lines := verbatim{say(strong, fmt.Sprintf("%d. ", i+1)).and(plain, s.Text).and(faint, proofMark(s.Proof))}
		if a := s.Access; a != nil {
			lines = append(lines, say(plain, "   ").and(plain, accessWords(a)).and(faint, "  at moment "+a.Moment.String()))
			lines = append(lines, stackLines(untilStart(a.Stack))...)
		} else if s.Site != nil {
			lines = append(lines, append(say(plain, "   "), siteLine(*s.Site)...))
		}
		d = append(d, lines)
		d = append(d, sourceLines(s.Source)...)
		// A loop's stores are represented by the first and the last of them.
		if n := alike(steps[i:]); n > 3 {
			d = append(d, verbatim{say(faint, fmt.Sprintf("   ... %d more by the same instruction ...", n-2))})
			i += n - 2
		}
		parts = append(parts, d)
	}
	return parts
}

// alike counts the steps at the beginning of the list that are by the same instruction with the
// same callers.
func alike(steps []evidence.CauseStep) int {
	n := 1
	for n < len(steps) && sameCode(steps[0].Access, steps[n].Access) {
		n++
	}
	return n
}

func sameCode(a, b *evidence.SeenAccess) bool {
	if a == nil || b == nil || a.Variable != b.Variable || a.Thread.Number != b.Thread.Number {
		return false
	}
	return slices.EqualFunc(a.Stack.Frames, b.Stack.Frames, func(x, y evidence.Frame) bool { return x.Site.PC == y.Site.PC })
}

// sourceLines are the source lines of a step, without a heading.
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
	if a.Unreached {
		text += ", which the failing run did not reach: a replay with the signal delayed did"
	}
	return text
}

// untilStart leaves out the frames that every thread begins with.
func untilStart(s evidence.Stack) evidence.Stack {
	n := len(s.Frames)
	for n > 1 && starts[s.Frames[n-1].Site.Function] {
		n--
	}
	s.Frames = s.Frames[:n]
	rust := n
	for rust > 1 && ofRustStart(s.Frames[rust-1].Site.Function) {
		rust--
	}
	if slices.ContainsFunc(s.Frames[rust:], func(f evidence.Frame) bool { return strings.HasPrefix(f.Site.Function, rustStart) }) {
		s.Frames = s.Frames[:rust]
	}
	return s
}

// starts are the functions of the C library and its start files that call a program's first
// function.
var starts = map[string]bool{"_start": true, "__libc_start_main": true, "__libc_start_main_impl": true, "__libc_start_call_main": true,
	"start_thread": true, "clone": true, "__clone": true, "clone3": true, "__clone3": true}

// rustStart begins the names of the functions that call main in Rust. The C main calls them, and
// they call main through closures and functions that catch panics.
const rustStart = "std::rt::lang_start"

func ofRustStart(function string) bool {
	if function == "main" {
		return true
	}
	for _, prefix := range []string{"std::rt::", "std::panicking::", "std::panic::", "std::sys::", "core::ops::function::FnOnce::", "<&dyn core::ops::function::Fn"} {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return false
}

func lockWords(locks []evidence.Lock) string {
	if len(locks) == 0 {
		return "no pthread lock held"
	}
	var names []string
	for _, l := range locks {
		names = append(names, lockName(l))
	}
	return "holds " + strings.Join(names, ", ")
}

func lockName(l evidence.Lock) string {
	name := cmp.Or(l.Name, l.Address.String())
	if l.Shared {
		name += " (shared)"
	}
	return name
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
	list = append(list, fact{"seen in", say(plain, seenIn(i))},
		fact{"score", say(plain, fmt.Sprintf("%.2f", i.Score)).and(faint, ": "+i.Measure)})
	table := grid{header: []string{"#", "failing run", "passing run"}, fit: true}
	if len(i.Passing) == 0 {
		table.header = table.header[:2]
	}
	for n := range max(len(i.Failing), len(i.Passing)) {
		row := []string{fmt.Sprint(n + 1), "", ""}
		if n < len(i.Failing) {
			row[1] = accessCell(&i.Failing[n])
		}
		if n < len(i.Passing) {
			row[2] = accessCell(&i.Passing[n])
		}
		table.rows = append(table.rows, row[:len(table.header)])
	}
	d := []block{list, table}
	for n := range i.Failing {
		a := &i.Failing[n]
		head := say(strong, fmt.Sprintf("failing run, %d: ", n+1)).and(plain, accessWords(a))
		if !a.Unreached {
			head = head.and(faint, "  at moment "+a.Moment.String())
		}
		d = append(d, append(verbatim{head}, stackLines(untilStart(a.Stack))...))
	}
	return d
}

func seenIn(i *evidence.Interleaving) string {
	if i.PassingOf == 0 {
		return fmt.Sprintf("%d of %s; there is no passing one to compare with", i.FailingRuns, wording.Count(i.FailingOf, "failing run"))
	}
	return fmt.Sprintf("%d of %d failing and %d of %d passing runs", i.FailingRuns, i.FailingOf, i.PassingRuns, i.PassingOf)
}

func accessCell(a *evidence.SeenAccess) string {
	text := accessWords(a)
	if a.Site != nil {
		text += " in " + placeName(*a.Site)
		if a.Site.File != "" {
			text += fmt.Sprintf(" at %s:%d", path.Base(a.Site.File), a.Site.Line)
		}
	}
	if a.Unreached {
		return Clean(text)
	}
	return Clean(text + "; " + lockWords(a.Locks))
}

// ruledOut lists the differences between the runs, and those that were examined without result.
func ruledOut(d *evidence.Diagnosis) []block {
	var blocks []block
	if len(d.Differences)+len(d.Divergences) > 0 {
		var lines verbatim
		for i := range d.Divergences {
			lines = append(lines, divergence(&d.Divergences[i])...)
		}
		for _, text := range d.Differences {
			lines = append(lines, say(plain, "- "+Clean(text)))
		}
		blocks = append(blocks, heading{text: "What differs between failing and passing runs"}, lines)
	}
	return append(blocks, excluded(d.Excluded)...)
}

// divergence tells a branch, with what led to the values that it compared.
func divergence(d *evidence.Divergence) (lines verbatim) {
	lines = append(lines, say(plain, "- "+Clean(d.Text)))
	for i := range d.Origin {
		lines = append(lines, say(faint, "    "+Clean(d.Origin[i].Text)))
	}
	return lines
}

func excluded(list []evidence.Fact) []block {
	if len(list) == 0 {
		return nil
	}
	var f facts
	for _, x := range list {
		f = append(f, fact{Clean(x.Name), say(plain, x.Text)})
	}
	return []block{heading{text: "Looked at and ruled out"}, f}
}

// coverage says which accesses the passes saw, and which they did not.
func coverage(d *evidence.Diagnosis) []block {
	if d == nil {
		return nil
	}
	c := &d.Coverage
	if c.Passes == 0 && len(d.Watched) == 0 && c.Limits == nil {
		return nil
	}
	summary := fmt.Sprintf("%s over %s, %d accesses seen", wording.Count(c.Passes, "replay"), d.Recording, c.Hits)
	if c.Lost > 0 {
		summary += fmt.Sprintf(", %d lost", c.Lost)
	}
	if c.Backend != "" {
		summary += ", by " + c.Backend
	}
	summary += fmt.Sprintf(", in %v; failing recordings %d, passing %d", time.Duration(c.Nanoseconds).Round(time.Millisecond), d.Failing, d.Passing)
	blocks := []block{heading{text: "What was traced"}, prose{say(plain, summary)}}
	if len(d.Watched) > 0 {
		blocks = append(blocks, watched(d.Watched))
	}
	var limits verbatim
	for _, l := range c.Limits {
		if d.Unknown == nil || !evidence.HasLimit(d.Unknown.Because, &l) { // it is printed with "unknown"
			limits = append(limits, say(caveat, "- "+Clean(l.Text)))
		}
	}
	if limits != nil {
		blocks = append(blocks, limits)
	}
	if len(d.Causes)+len(d.Leads) > 0 {
		blocks = append(blocks, prose{say(faint, fmt.Sprintf("to stop at a moment: diagnose replay %s --until MOMENT --gdb", d.Recording))})
	}
	return blocks
}

// watched has a row for each watched memory. Passes that watched it alike share a row.
func watched(list []evidence.Watched) grid {
	type memory struct {
		name         string
		address      evidence.Addr
		size         int
		untraced     string
		instructions int
	}
	type seen struct {
		passes             []string
		hits, lost, unseen uint64
	}
	var order []memory
	all := map[memory]*seen{}
	for _, w := range list {
		m := memory{w.Name, w.Address, w.Size, w.Untraced, w.Instructions}
		if all[m] == nil {
			all[m] = &seen{}
			order = append(order, m)
		}
		s := all[m]
		s.passes = append(s.passes, fmt.Sprint(w.Pass))
		s.hits, s.lost, s.unseen = s.hits+w.Hits, s.lost+w.Lost, s.unseen+w.Unseen
	}
	table := grid{header: []string{"variable", "address", "bytes", "pass", "accesses"}}
	for _, m := range order {
		s := all[m]
		pass, hits := strings.Join(s.passes, ", "), fmt.Sprint(s.hits)
		switch {
		case m.untraced != "":
			pass, hits = "-", "not traced: "+m.untraced
		case m.instructions > 0:
			hits += fmt.Sprintf(" of %s; it changed %s without them", wording.Count(m.instructions, "known instruction"), wording.Times(s.unseen))
		case s.lost > 0:
			hits += fmt.Sprintf(" (%d lost)", s.lost)
		}
		table.rows = append(table.rows, []string{Clean(m.name), m.address.String(), fmt.Sprint(m.size), pass, hits})
	}
	return table
}
