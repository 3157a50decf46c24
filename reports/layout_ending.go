package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/internal/wording"
)

// maxSeenFrames bounds the stack of a message or a failed call; JSON has more.
const maxSeenFrames = 8

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
		list = append(list, lastWord{say(plain, "writes to "+string(m.Stream)), lines, &m.Seen})
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
		list = append(list, lastWord{what: l, seen: &c.Seen})
	}
	slices.SortStableFunc(list, func(a, b lastWord) int { return cmp.Compare(a.seen.Position, b.seen.Position) })
	return list
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
	if n := len(stack.Frames) - maxSeenFrames; n > 0 {
		stack.Frames, stack.Stopped = stack.Frames[:maxSeenFrames], "left out: "+wording.Count(n, "outer frame")
	}
	return stackLines(stack)
}
