package reports

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"diagnose/evidence"
)

// maxValue bounds one value's text in runes; JSON has the whole.
const maxValue = 300

func stacks(c *evidence.Case) []block {
	if len(c.Stacks) == 0 {
		return nil
	}
	d := []block{heading{text: "Stacks"}}
	for _, g := range c.Stacks {
		lines := verbatim{groupLine(g)}
		lines = append(lines, stackLines(g.Stack)...)
		lines = append(lines, pythonLines(c, &g)...)
		d = append(d, lines)
	}
	return d
}

func groupLine(g evidence.ThreadGroup) line {
	var l line
	if len(g.Threads) == 1 {
		l = say(strong, g.Threads[0].Label()).and(faint, fmt.Sprintf("  (LWP %d%s)", g.Threads[0].TID, recordedAs(g.Threads[0])))
	} else {
		l = say(strong, fmt.Sprintf("%d threads with this stack: ", len(g.Threads))).and(plain, numberRanges(g.Threads))
		if start := g.Threads[0].Start; start != "" {
			l = l.and(plain, `, started in "`+start+`"`)
		}
	}
	if g.Failing {
		l = l.and(alarm, "  <- failed here")
	}
	if g.Waiting != "" {
		l = l.and(caveat, "  "+g.Waiting)
	}
	return l
}

// recordedAs keeps a thread from being mistaken for another one of a cause: the core counts the
// failing thread first, the recording counts in order of creation.
func recordedAs(t evidence.ThreadRef) string {
	if t.Recorded == 0 || t.Recorded == t.Number {
		return ""
	}
	return fmt.Sprintf(", thread %d of the recording", t.Recorded)
}

// numberRanges is "2, 4-9, 12".
func numberRanges(threads []evidence.ThreadRef) string {
	var parts []string
	threads = slices.SortedFunc(slices.Values(threads), func(a, b evidence.ThreadRef) int { return cmp.Compare(a.Number, b.Number) })
	for i := 0; i < len(threads); {
		j := i
		for j+1 < len(threads) && threads[j+1].Number == threads[j].Number+1 {
			j++
		}
		text := fmt.Sprint(threads[i].Number)
		if j > i {
			text += fmt.Sprintf("-%d", threads[j].Number)
		}
		parts = append(parts, text)
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

func stackLines(s evidence.Stack) verbatim {
	var lines verbatim
	for i, f := range s.Frames {
		if s.Omitted > 0 && i == s.OmittedAt {
			lines = append(lines, say(caveat, fmt.Sprintf("     ... %d frames left out ...", s.Omitted)))
		}
		if inside := insideOurs(s.Frames[i:]); inside != "" {
			if i == 0 || insideOurs(s.Frames[i-1:]) != inside || s.Omitted > 0 && i == s.OmittedAt {
				lines = append(lines, say(faint, "     ... "+inside+" ..."))
			}
			continue
		}
		lines = append(lines, frameLine(f))
		lines = append(lines, variableLines(f)...)
	}
	if s.Stopped != "" {
		lines = append(lines, say(caveat, "     the stack ends here: "+s.Stopped))
	}
	return lines
}

func frameLine(f evidence.Frame) line {
	l := say(plain, fmt.Sprintf("#%-3d ", f.Index))
	if f.Kind == evidence.SignalFrame {
		return l.and(caveat, "<signal handler called>").and(caveat, guess(f.Trust))
	}
	switch f.Kind {
	case evidence.Physical:
		l = l.and(faint, fmt.Sprintf("%#016x ", uint64(f.Site.PC)))
	case evidence.TailCall:
		l = l.and(faint, fmt.Sprintf("%-18s ", "  tail call"))
	default:
		l = l.and(faint, fmt.Sprintf("%-18s ", "  inlined"))
	}
	l = l.and(name, functionOf(f.Site))
	if library := ownLibrary(&f.Site); library != "" {
		return l.and(plain, "()").and(faint, " of "+library).and(caveat, guess(f.Trust))
	}
	if f.Args != nil || f.Site.File != "" {
		l = l.and(plain, "("+argumentList(f.Args)+")")
	}
	switch {
	case f.Site.File != "":
		l = l.and(plain, " at ").and(place, position(f.Site))
	case f.Site.Module != "":
		l = l.and(faint, fmt.Sprintf(" in %s+%v", f.Site.Module, f.Site.ModuleOffset))
	}
	return l.and(faint, inlinedInto(f.InlinedInto)).and(caveat, missing(f.Gap)+guess(f.Trust))
}

// inlinedInto names the functions that a frame's function was inlined into.
func inlinedInto(sites []evidence.Site) string {
	text := ""
	for i := range sites {
		text += ", inlined into " + functionOf(sites[i]) + "()"
	}
	return text
}

// missing says where other tail calls may be missing in a stack.
func missing(g evidence.Gap) string {
	switch g {
	case evidence.GapInner:
		return "  [perhaps more tail calls after this]"
	case evidence.GapOuter:
		return "  [perhaps more tail calls before this]"
	}
	return ""
}

// insideOurs names the library of this tool that the first of the frames is inside of; empty for
// frames that represent the program's own calls, such as pthread_join.
func insideOurs(frames []evidence.Frame) string {
	s := &frames[0].Site
	if !strings.HasPrefix(s.Function, "dg_") {
		return ""
	}
	return ownLibrary(s)
}

// ownLibrary names the library of this tool that a frame belongs to, by the path that its sources
// are compiled under; empty for the program's and other frames. The line in those sources tells a
// user nothing.
func ownLibrary(s *evidence.Site) string {
	if !strings.HasPrefix(s.File, "/diagnose/agent/") {
		return ""
	}
	if path.Base(s.Module) == "libdiagnose-record.so" {
		return "the recording library"
	}
	return "the agent"
}

func guess(t evidence.Trust) string {
	if !t.Guess() {
		return ""
	}
	return "  [guess: " + string(t) + "]"
}

func argumentList(args []evidence.Variable) string {
	parts := make([]string, len(args))
	for i, a := range args {
		parts[i] = a.Name + "=" + shortValue(a.Value)
	}
	return strings.Join(parts, ", ")
}

// shortValue leaves out the members of an aggregate and the details of a reason.
func shortValue(v evidence.Value) string {
	switch {
	case v.Unavailable != "":
		return "<" + cut(v.Unavailable) + ">"
	case v.Text == "" && len(v.Fields) > 0:
		return "{...}"
	}
	return cut(v.Text)
}

// variableLines lists the locals, and the arguments that have parts to show.
func variableLines(f evidence.Frame) verbatim {
	var lines verbatim
	add := func(v evidence.Variable) {
		l := say(plain, "         ").and(name, v.Name)
		if v.Type != "" {
			l = l.and(faint, " ("+v.Type+")")
		}
		lines = append(lines, l.and(plain, " = "+cut(valueText(v.Value))))
	}
	for _, a := range f.Args {
		if len(a.Value.Fields) > 0 {
			add(a)
		}
	}
	for _, v := range f.Locals {
		add(v)
	}
	return lines
}

// valueText writes a value with its parts: `0x55d0 -> {id = 3, next = 0x0}`.
func valueText(v evidence.Value) string {
	if v.Unavailable != "" {
		return "<" + v.Why() + ">"
	}
	if len(v.Fields) == 0 {
		return v.Text
	}
	parts := make([]string, 0, len(v.Fields)+1)
	for _, f := range v.Fields {
		text := valueText(f.Value)
		if f.Name != "" {
			text = f.Name + " = " + text
		}
		parts = append(parts, text)
	}
	if v.Elided > 0 {
		parts = append(parts, fmt.Sprintf("... %d more", v.Elided))
	}
	body := "{" + strings.Join(parts, ", ") + "}"
	short := strings.IndexByte(v.Text, '{')
	switch {
	case v.Text == "":
		return body
	case short >= 0 && strings.HasSuffix(v.Text, "}"): // the parts in short form
		return v.Text[:short] + body
	case v.Address != nil:
		return v.Text + " -> " + body
	}
	return v.Text + " " + body
}

func cut(text string) string {
	if len(text) <= maxValue {
		return text
	}
	runes := []rune(text)
	if len(runes) <= maxValue {
		return text
	}
	return string(runes[:maxValue]) + "..."
}

func goroutines(list []evidence.Goroutine) []block {
	if len(list) == 0 {
		return nil
	}
	d := []block{heading{text: "Goroutines"}}
	for _, g := range list {
		l := say(strong, fmt.Sprintf("goroutine %d", g.ID)).and(plain, " ["+g.Status)
		if g.Wait != "" {
			l = l.and(plain, ", "+g.Wait)
		}
		l = l.and(plain, "]")
		if g.TID != 0 {
			l = l.and(faint, fmt.Sprintf("  (LWP %d)", g.TID))
		}
		if g.Failing {
			l = l.and(alarm, "  <- failed here")
		}
		d = append(d, append(verbatim{l}, stackLines(g.Stack)...))
	}
	return d
}
