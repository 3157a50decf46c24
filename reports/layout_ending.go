package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

// maxSeenFrames bounds the stack of a message or a failed call, and maxBareFrames that of one of whose
// program no source is known, such as an interpreter; JSON has more.
const (
	maxSeenFrames = 8
	maxBareFrames = 3
)

// lastWord is a message or a failed call.
type lastWord struct {
	what line
	text []string // the written text, by line
	seen *evidence.Seen
}

// lastWordsOf lists the messages and the failed calls in their order.
func lastWordsOf(e *evidence.Ending) []lastWord {
	if e == nil {
		return nil
	}
	var list []lastWord
	for i := range e.Messages {
		m := &e.Messages[i]
		lines := strings.Split(strings.TrimSuffix(m.Text, "\n"), "\n")
		if m.Omitted > 0 {
			lines = append([]string{fmt.Sprintf("... (%s are left out)", wording.Count(m.Omitted, "byte"))}, lines...)
		}
		what := say(plain, "writes to "+destination(m))
		if p := e.Panic; p != nil && p.Joined != nil && *p.Joined == i {
			what = what.and(faint, ", as it unwraps the result of the thread that had panicked")
		}
		list = append(list, lastWord{what, lines, &m.Seen})
	}
	for i := range e.Calls {
		c := &e.Calls[i]
		l := say(strong, c.Call).and(plain, ": ").and(alarm, string(c.Error))
		if c.Meaning != "" {
			l = l.and(plain, " ("+c.Meaning+")")
		}
		if c.ByRecorder {
			l = l.and(caveat, ", refused by the recorder, not by the kernel")
		}
		if c.Times > 1 {
			l = l.and(faint, fmt.Sprintf(", %d times, the last time", c.Times))
		}
		list = append(list, lastWord{what: l, text: alikeLines(c), seen: &c.Seen})
	}
	slices.SortStableFunc(list, func(a, b lastWord) int { return cmp.Compare(a.seen.Position, b.seen.Position) })
	first := slices.IndexFunc(e.Messages, func(m evidence.Message) bool { return m.Differs })
	if e.Panic != nil { // says why the program gave up
		first = e.Panic.Message
	}
	if first >= 0 {
		i := slices.IndexFunc(list, func(x lastWord) bool { return x.seen == &e.Messages[first].Seen })
		x := list[i]
		list = slices.Insert(slices.Delete(list, i, i+1), 0, x)
	}
	return list
}

// destination is where a message went.
func destination(m *evidence.Message) string {
	switch {
	case m.Differs:
		return m.File + " the byte that differs"
	case m.File != "":
		return m.File
	}
	return string(m.Stream)
}

// alikeLines are the calls that a failed call represents, with their paths if these are known.
func alikeLines(c *evidence.FailedCall) []string {
	if c.Alike == 0 {
		return nil
	}
	text := "after " + wording.Count(c.Alike, "call") + " of the same code that failed likewise"
	var paths []string
	for _, p := range c.AlikePaths {
		paths = append(paths, strconv.Quote(p))
	}
	if len(paths) > 0 && len(paths) < c.Alike {
		text += ", the last ones with"
	} else if len(paths) > 0 {
		text += ", with"
	}
	return []string{strings.TrimSpace(text + " " + strings.Join(paths, ", "))}
}

// lastWords are the program's last output and its failed system calls before it ended itself.
func lastWords(e *evidence.Ending) []block {
	list := lastWordsOf(e)
	if len(list) == 0 {
		return nil
	}
	d := []block{heading{"Before the end", "what the program wrote, and which system calls failed"}}
	var earlier []string
	if n := e.EarlierMessages; n > 0 {
		earlier = append(earlier, wording.Count(n, "write"))
	}
	if n := e.EarlierCalls; n > 0 {
		earlier = append(earlier, wording.Count(n, "failed system call"))
	}
	if earlier != nil {
		d = append(d, verbatim{say(faint, "left out from before: "+strings.Join(earlier, ", "))})
	}
	for _, x := range list {
		lines := verbatim{x.what.and(faint, "  at moment "+x.seen.Moment.String()+proofMark(x.seen.Proof))}
		for _, text := range x.text {
			lines = append(lines, say(plain, "    ").and(strong, expandTabs(text)))
		}
		lines = append(lines, ownStackLines(x.seen)...)
		d = append(d, lines)
	}
	return d
}

// ownStackLines are the frames of the program's own code, with the frame that it called.
func ownStackLines(s *evidence.Seen) verbatim {
	stack := untilStart(s.Stack)
	own := 0
	if s.Site != nil {
		own = max(0, slices.IndexFunc(stack.Frames, func(f evidence.Frame) bool { return f.Site == *s.Site }))
	}
	stack.Frames = stack.Frames[max(0, own-1):]
	most := maxSeenFrames
	if s.Site != nil && !slices.ContainsFunc(stack.Frames, func(f evidence.Frame) bool { return f.Site.File != "" && f.Site.Module == s.Site.Module }) {
		most = maxBareFrames
	}
	if n := len(stack.Frames) - most; n > 0 {
		stack.Frames, stack.Stopped = stack.Frames[:most], "left out: "+wording.Count(n, "outer frame")
	}
	return stackLines(stack)
}
