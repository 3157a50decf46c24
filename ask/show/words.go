package show

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"diagnose/ask"
	"diagnose/evidence"
	"diagnose/internal/wording"
)

// siteText is a place in the program's code.
func siteText(s *evidence.Site) string {
	switch {
	case s.Function != "" && s.Line != 0:
		return fmt.Sprintf("%s %s:%d", s.Function, filepath.Base(s.File), s.Line)
	case s.Function != "":
		return s.Function
	case s.PC != 0:
		return s.PC.String()
	}
	return ""
}

// authorText says on whose behalf a write was made; empty for the program's own code.
func authorText(by ask.Author, call string) string {
	switch {
	case by == ask.ByHeap:
		return " by the heap"
	case by == ask.ByCall && call != "":
		return " by " + call
	case by == ask.ByCall:
		return " by a system call"
	case by == ask.ByKernel && call != "":
		return " by the kernel, in " + call
	case by == ask.ByKernel:
		return " by the kernel"
	}
	return ""
}

func valueText(v *evidence.Value) string {
	if v.Unavailable != "" {
		return "<" + v.Unavailable + ">"
	}
	if len(v.Fields) == 0 {
		return v.Text
	}
	var list []string
	for i := range v.Fields {
		f := &v.Fields[i]
		text := valueText(&f.Value)
		if !strings.HasPrefix(f.Name, "[") {
			text = f.Name + " = " + text
		}
		list = append(list, text)
	}
	if v.Elided > 0 {
		list = append(list, "...")
	}
	return "{" + strings.Join(list, ", ") + "}"
}

// spanText says which part of the recording was asked about.
func spanText(s *ask.Span) string {
	switch {
	case s.From != nil && s.Until != nil:
		return fmt.Sprintf("from %s until %s", s.From.At, s.Until.At)
	case s.From != nil:
		return fmt.Sprintf("from %s until the end", s.From.At)
	case s.Until != nil:
		return "until " + s.Until.At
	}
	return "in the whole recording"
}

// memoryText describes what an expression names.
func memoryText(m *ask.Memory) []string {
	text := fmt.Sprintf("%s at %v", wording.Size(uint64(m.Size)), m.Address)
	if m.Type != "" {
		text = m.Type + ", " + text
	}
	switch m.Home {
	case ask.HomeStatic:
		text += ", a variable with static storage"
	case ask.HomeHeap:
		text += fmt.Sprintf(", in a heap object of %s", wording.Size(m.Object.Size))
		if m.Object.State != evidence.HeapLive {
			text += ", which was freed"
		}
		if m.Object.Allocated != nil {
			text += ", allocated at " + siteText(m.Object.Allocated)
		}
	case ask.HomeStack:
		text += ", in the frame of " + m.Frame.Function
	default:
		text += "; what uses this memory is not known"
	}
	if m.In != nil && m.Home != ask.HomeStack {
		text += ", as " + m.In.Function + " names it"
	}
	list := []string{text}
	begins := map[ask.Home]string{ask.HomeHeap: "the object was allocated", ask.HomeStack: "the call began"}[m.Home]
	switch {
	case m.Since != nil:
		list = append(list, fmt.Sprintf("%s after event %s, position %d", begins, m.Since.At, m.Since.Position))
	case begins != "":
		list = append(list, "it is not known since when; writes may be of what used this memory before (inferred)")
	}
	if m.Since != nil && m.Proof == evidence.Inferred {
		list = append(list, "the compiler may use this memory for other variables of the call, too (inferred)")
	}
	if m.Earlier > 0 {
		list = append(list, fmt.Sprintf("%s to this memory before, when it was of something else, %s left out", wording.Count(m.Earlier, "write"), are(m.Earlier)))
	}
	return list
}

func are(n uint64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// gapText says what may have happened without a row.
func gapText(g *ask.Gap) string {
	switch g.Kind {
	case ask.GapPart:
		return fmt.Sprintf("only the first %d of %d bytes were watched", g.Count, g.Of)
	case ask.GapUntraced:
		return "writes were not traced: " + g.Text
	case ask.GapKnown:
		return fmt.Sprintf("it is written too often to see each write: only those of %s were seen, and it changed %s without them", wording.Count(g.Count, "known instruction"), wording.Count(g.Of, "time"))
	case ask.GapLost:
		return fmt.Sprintf("%s not seen", wording.Count(g.Count, "write"))
	case ask.GapEnded:
		return strings.TrimSuffix("the replay ended early: "+g.Text, ": ")
	case ask.GapKernel:
		return "the kernel may have written there without a change of the value; each change of it has a row"
	case ask.GapProcesses:
		return "other processes share memory with the program, or it made calls that the recorder does not know: what they write is not seen"
	case ask.GapRegister:
		return "at other places of its function the variable is in a register, or is not kept: changes there are not seen"
	case ask.GapUnreachable:
		return fmt.Sprintf("threads could not be stopped at %s", wording.Count(g.Count, "place"))
	case ask.GapReturns:
		return fmt.Sprintf("%s could not be observed", wording.Count(g.Count, "return"))
	case ask.GapFunctions:
		return "calls of functions are not shown: " + g.Text
	case ask.GapLibraries:
		return "calls of functions without debug information, and of inlined functions, are not shown, nor are releases of locks"
	case ask.GapOrder:
		return "writes by a thread between two of its events were seen by several replays: their order is not known"
	case ask.GapBetween:
		return "it depends on more memory than one replay can watch: of the values between two events of a thread only the last one is shown"
	case ask.GapWords:
		return fmt.Sprintf("the expression depends on more than %s of memory, and what it was without the others is not known", wording.Count(g.Count, "word"))
	}
	return string(g.Kind)
}

// noun is what the rows of a form are.
func noun(f ask.Form) string {
	return map[ask.Form]string{ask.FormWrites: "write", ask.FormLastWrite: "write", ask.FormValues: "value", ask.FormCalls: "call",
		ask.FormExecuted: "time", ask.FormDid: "event", ask.FormHolders: "time"}[f]
}

// Headline is the answer in a line.
func Headline(a *ask.Answer) string {
	n := uint64(a.Rows())
	if n > 0 {
		return headlineOfRows(a, n)
	}
	span := spanText(&a.Span)
	writes := a.Form == ask.FormWrites || a.Form == ask.FormLastWrite
	if writes && !a.Coverage.Complete && a.Coverage.Unchanged() {
		return fmt.Sprintf("no instruction and no recorded call wrote %s, and its value did not change, %s", a.Asked, span)
	}
	if !a.Coverage.Complete {
		unseen := map[ask.Form]string{ask.FormWrites: "no write of %s was seen", ask.FormLastWrite: "no write of %s was seen", ask.FormValues: "no value of %s was seen",
			ask.FormCalls: "no call of %s was seen", ask.FormExecuted: "it was not seen that %s was executed", ask.FormDid: "nothing that thread %s did was seen",
			ask.FormHolders: "it was not seen that a thread held %s"}
		return fmt.Sprintf(unseen[a.Form]+" %s", a.Asked, span)
	}
	none := map[ask.Form]string{ask.FormWrites: "nothing wrote %s", ask.FormLastWrite: "nothing wrote %s", ask.FormValues: "%s had no value",
		ask.FormCalls: "%s was not called", ask.FormExecuted: "%s was not executed", ask.FormDid: "thread %s did nothing", ask.FormHolders: "no thread held %s"}
	return fmt.Sprintf(none[a.Form]+" %s", a.Asked, span)
}

func headlineOfRows(a *ask.Answer, n uint64) string {
	span := spanText(&a.Span)
	total := n + a.LeftOut
	count := wording.Count(total, noun(a.Form))
	if a.More {
		count = "at least " + count
	}
	switch a.Form {
	case ask.FormLastWrite:
		w := &a.Writes[0]
		return fmt.Sprintf("%s was last written by thread %d at %s%s %s", a.Asked, w.Thread, siteText(&w.Site), authorText(w.By, w.Call), span)
	case ask.FormExecuted:
		return fmt.Sprintf("%s was executed %s %s", a.Asked, count, span)
	case ask.FormDid:
		return fmt.Sprintf("thread %s: %s %s", a.Asked, count, span)
	case ask.FormHolders:
		return fmt.Sprintf("%s was held %s %s", a.Asked, count, span)
	}
	return fmt.Sprintf("%s: %s %s", a.Asked, count, span)
}

// notes are the lines below a table.
func notes(a *ask.Answer) []string {
	var list []string
	if a.Memory != nil {
		for i, text := range memoryText(a.Memory) {
			if i == 0 {
				text = a.Asked + ": " + text
			}
			list = append(list, text)
		}
	}
	for i := range a.Places {
		list = append(list, placeText(&a.Places[i]))
	}
	for i := range a.Waits {
		w := &a.Waits[i]
		list = append(list, strings.TrimSuffix(fmt.Sprintf("thread %d waited for it after its event %d, at %s", w.Thread, w.Event, siteText(&w.Site)), ", at "))
	}
	return list
}

func placeText(p *ask.Place) string {
	text := fmt.Sprintf("%s at %v", siteText(&p.Site), p.PC)
	if p.Inlined {
		text += ", inlined"
	}
	if p.Proof == evidence.Inferred {
		text += ", inferred: an instruction of the line, of which no statement begins there"
	}
	if p.Unreachable {
		return text + ": threads could not be stopped there"
	}
	text += ", reached " + wording.Count(p.Hits, "time")
	if p.Missed > 0 {
		text += fmt.Sprintf(", %s could not be observed", wording.Count(p.Missed, "return"))
	}
	if p.Left > 0 {
		text += fmt.Sprintf(", %s had no return that was seen", wording.Count(p.Left, "call"))
	}
	return text
}

// warnings are the limits that come before all else.
func warnings(a *ask.Answer) []string {
	var list []string
	for _, l := range a.Coverage.Limits {
		if l.Severe {
			list = append(list, "limit: "+l.Text)
		}
	}
	return list
}

// coverage are the lines that say what the answer rests on.
func coverage(a *ask.Answer) []string {
	var list []string
	for i := range a.Coverage.Gaps {
		if g := &a.Coverage.Gaps[i]; g.Kind != ask.GapKernel || a.Rows() == 0 {
			list = append(list, gapText(g))
		}
	}
	for _, l := range a.Coverage.Limits {
		if !l.Severe {
			list = append(list, "limit: "+l.Text)
		}
	}
	text := wording.Count(uint64(a.Coverage.Replays), "replay")
	if a.Coverage.Backend != "" {
		text += " by " + a.Coverage.Backend
	}
	text += " in " + a.Elapsed.Round(time.Millisecond).String()
	if a.LeftOut > 0 {
		which := "first"
		if a.Form == ask.FormWrites || a.Form == ask.FormValues || a.Form == ask.FormHolders {
			which = "last"
		}
		text += fmt.Sprintf("; the %s %d of %d are shown, --max 0 shows all", which, a.Rows(), uint64(a.Rows())+a.LeftOut)
	}
	if a.More {
		text += "; the replay ended there and there may be more, --max 0 shows all"
	}
	return append(list, text)
}
