package ending

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
)

// message is the text of successive writes to a stream.
type message struct {
	writes []*call
	// report is the report of a language's runtime in it; nil if there is none.
	report *report
}

func (m *message) stream() evidence.Stream { return m.writes[0].stream }

// differs: it gave the byte of the declared file that differs.
func (m *message) differs() bool { return m.writes[0].differs > 0 }

// whole is the text of the message.
func (m *message) whole() string {
	var text strings.Builder
	for _, c := range m.writes {
		text.Write(c.text)
	}
	return text.String()
}

// first is the write that represents the message: the one that began its last line, or a report.
func (m *message) first() *call {
	if m.report != nil {
		return m.writes[0]
	}
	at := len(m.writes) - 1
	for at > 0 && !m.writes[at-1].endsLine() {
		at--
	}
	return m.writes[at]
}

// messages are the last messages of each stream, in the order of their beginnings: lines that one
// write began, and the reports of runtimes.
func (f *found) messages() []*message {
	open := map[evidence.Stream]*message{}
	var list []*message
	for _, c := range f.writes {
		if len(c.text) == 0 {
			continue // no replay reached it
		}
		m := open[c.stream]
		if m == nil || c.stream == evidence.DeclaredFile || m.writes[len(m.writes)-1].endsLine() || m.writes[0].moment.Thread != c.moment.Thread {
			m = &message{}
			open[c.stream] = m
			list = append(list, m)
		}
		m.writes = append(m.writes, c)
	}
	list = joinReports(list)
	counts := map[evidence.Stream]int{}
	var kept []*message
	for _, m := range slices.Backward(list) {
		if counts[m.stream()]++; counts[m.stream()] > mostMessages && m.report == nil && !m.differs() {
			f.earlierWrites += len(m.writes)
			continue
		}
		kept = append(kept, m)
	}
	slices.Reverse(kept)
	return kept
}

// told makes the report.
func (f *found) told(messages []*message) *evidence.Ending {
	out := &evidence.Ending{EarlierMessages: f.earlierWrites, EarlierCalls: f.earlierFailed}
	for _, c := range f.failed {
		out.Calls = append(out.Calls, c.told())
	}
	for i := 0; i < len(messages); {
		n := 1
		for i+n < len(messages) && together(messages[i+n-1], messages[i+n]) {
			n++
		}
		out.Messages = append(out.Messages, f.tell(messages[i:i+n]))
		if r := messages[i].report; r != nil {
			r.panic.Message, r.panic.Proof = len(out.Messages)-1, evidence.Replayed
			out.Panic = &r.panic // the last one, if there are several
		}
		i += n
	}
	return out
}

// together reports whether the same code of the program, in the same calls, wrote two successive
// messages.
func together(a, b *message) bool {
	x, y := a.first(), b.first()
	return a.report == nil && b.report == nil && !a.differs() && !b.differs() && a.stream() == b.stream() && x.moment.Thread == y.moment.Thread && x.seen && y.seen &&
		slices.EqualFunc(ownFrames(x), ownFrames(y), func(f, g evidence.Frame) bool { return f.Site.PC == g.Site.PC && f.CFA == g.CFA })
}

// ownFrames are the frames from the program's own code outward, or all frames if none is its own.
func ownFrames(c *call) []evidence.Frame {
	if c.site == nil {
		return c.stack.Frames
	}
	i := slices.IndexFunc(c.stack.Frames, func(f evidence.Frame) bool { return f.Site == *c.site })
	return c.stack.Frames[max(i, 0):]
}

// tell makes one message of several. The last of them represents it.
func (f *found) tell(list []*message) evidence.Message {
	var text strings.Builder
	for _, m := range list {
		text.WriteString(m.whole())
	}
	last := list[len(list)-1]
	if last.stream() == evidence.DeclaredFile {
		return f.tellFile(last, text.String())
	}
	out := evidence.Message{Stream: last.stream(), Text: strings.ToValidUTF8(text.String(), "\uFFFD"), Seen: last.first().by()}
	if last.report == nil {
		out.Text, out.Omitted = cutFront(out.Text)
	} else if n := len(out.Text) - mostText; n > 0 { // its beginning matters most
		out.Text, out.Omitted = strings.ToValidUTF8(out.Text[:mostText], ""), n
	}
	return out
}

// tellFile makes a message of writes to the declared file, the last of which is m.
func (f *found) tellFile(m *message, text string) evidence.Message {
	out := evidence.Message{Stream: evidence.DeclaredFile, File: f.file, Differs: m.differs(), Seen: m.first().by()}
	if m.differs() {
		text, out.Omitted = differing(text, m.writes[0].differs-1)
	} else {
		text, out.Omitted = cutFront(text)
	}
	out.Text = strings.ToValidUTF8(text, "\uFFFD")
	return out
}

func (c *call) by() evidence.Seen {
	return evidence.Seen{Moment: c.moment, Position: c.position, Thread: c.thread, Stack: c.stack, Site: c.site, Proof: evidence.Replayed}
}

func (c *call) told() evidence.FailedCall {
	return evidence.FailedCall{Call: c.words, Error: evidence.ErrorName(unix.ErrnoName(c.errno)), Meaning: c.errno.Error(), ByRecorder: c.refused, Times: c.times,
		Alike: c.alikeTimes(), AlikePaths: c.alikePaths(), Seen: c.by()}
}

// cutFront keeps the end of a text, which matters more than its beginning.
func cutFront(text string) (kept string, omitted int) {
	if len(text) <= mostText {
		return text, 0
	}
	n := len(text) - mostText
	// The rest of a word could be that of a secret whose name was cut off.
	end := strings.IndexByte(text[n:], '\n')
	if end < 0 || end > mostText/2 {
		end = strings.IndexAny(text[n:], " \t\n")
	}
	if end < 0 {
		return "", len(text)
	}
	return text[n+end+1:], n + end + 1
}
