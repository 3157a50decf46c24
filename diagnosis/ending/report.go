package ending

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"diagnose/evidence"
	"diagnose/replay/record"
)

// mostSaid bounds the text of a panic, in bytes.
const mostSaid = 500

// report is what the runtime of a language wrote to standard error when it gave up.
type report struct {
	panic  evidence.Panic
	writes []*call
}

func reportsOf(messages []*message) (list []*report) {
	for _, m := range messages {
		if m.report != nil {
			list = append(list, m.report)
		}
	}
	return list
}

// joinReports joins messages that form one report.
func joinReports(list []*message) []*message {
	var out []*message
	for i := 0; i < len(list); i++ {
		m := list[i]
		if m.stream() != evidence.StandardError || !beginsReport.Match(m.writes[0].text) {
			out = append(out, m)
			continue
		}
		p, n := reported(list[i:])
		if p == nil {
			out = append(out, m)
			continue
		}
		joined := &message{report: &report{panic: *p}}
		for j := range n {
			if x := list[i+j]; x.sameWriter(m) {
				joined.writes = append(joined.writes, x.writes...)
			} else {
				out = append(out, x) // another thread, or the other stream
			}
		}
		joined.report.writes = joined.writes
		out = append(out, joined)
		i += n - 1
	}
	return out
}

func (m *message) sameWriter(o *message) bool {
	return m.stream() == o.stream() && m.writes[0].moment.Thread == o.writes[0].moment.Thread
}

// reported reads the report that begins with the first of some messages, and returns how many of
// them belong to it; nil if they are no report.
func reported(list []*message) (*evidence.Panic, int) {
	var text strings.Builder
	ends := make([]int, len(list)) // of the text, by message
	for i, m := range list {
		if m.sameWriter(list[0]) {
			for _, c := range m.writes {
				text.Write(c.text)
			}
		}
		ends[i] = text.Len()
	}
	for _, form := range []func(string) (*evidence.Panic, int){rustPanic, goPanic, pythonError} {
		p, size := form(text.String())
		if p == nil {
			continue
		}
		p.Text = p.Text[:min(len(p.Text), mostSaid)]
		p.Text = strings.ToValidUTF8(p.Text, "")
		n := slices.IndexFunc(ends, func(end int) bool { return end >= size })
		return p, max(n, 0) + 1
	}
	return nil, 0
}

// statuses are the exit statuses of a process whose runtime reported a failure: Rust's
// (library/std/src/rt.rs, lang_start), Go's (runtime/panic.go, fatalpanic), and CPython's
// (Modules/main.c, pymain_run_python).
var statuses = map[evidence.Language]int{evidence.Rust: 101, evidence.Go: 2, evidence.Python: 1}

// explains reports whether the process may have ended because of the reported panic. A program in
// Rust or Python may catch a panic that was reported, and end later for another reason.
func explains(e *evidence.Ending, o record.Outcome) bool {
	p := e.Panic
	if p == nil || o.Status != statuses[p.Language] {
		return false
	}
	if p.Language == evidence.Go {
		return true // its runtime ends the process after the report
	}
	later := slices.ContainsFunc(e.Messages[p.Message+1:], func(m evidence.Message) bool { return m.Stream == evidence.StandardError })
	return !later && e.Messages[p.Message].Moment.Thread == o.Thread
}

// beginsReport matches the beginnings of reports.
var beginsReport = regexp.MustCompile(`^\n?(?:thread '|panic: |fatal error: |Traceback \(most recent call last\):)`)

// The hook that reports Rust's panics by default (library/std/src/panicking.rs,
// default_hook): first as it is since Rust 1.73, then as it was. The backtrace follows.
var (
	rustReport    = regexp.MustCompile(`^\n?thread '[^'\n]*'(?: \(\d+\))? panicked at ([^\n]+?):(\d+):\d+:\n([^\n]*)\n`)
	rustOldReport = regexp.MustCompile(`(?s)^thread '[^'\n]*' panicked at '(.*?)', ([^\n]+?):(\d+):\d+\n`)
	rustMore      = regexp.MustCompile(`^(?:(?:[ \t][^\n]*|stack backtrace:|note: [^\n]*)\n)*`)
)

func rustPanic(text string) (*evidence.Panic, int) {
	p := &evidence.Panic{Language: evidence.Rust}
	size := 0
	if m := rustReport.FindStringSubmatch(text); m != nil {
		p.Text, p.File, p.Line, size = m[3], m[1], number(m[2]), len(m[0])
	} else if m := rustOldReport.FindStringSubmatch(text); m != nil {
		p.Text, p.File, p.Line, size = m[1], m[2], number(m[3]), len(m[0])
	} else {
		return nil, 0
	}
	if p.Text == "" {
		p.Text = "a panic without a message"
	}
	return p, size + len(rustMore.FindString(text[size:]))
}

// goReport matches the report of the Go runtime for a panic or an error of its own
// (runtime/panic.go, printpanics and fatalthrow; runtime/traceback.go). The process ends after it.
var (
	goReport = regexp.MustCompile(`^(?:panic|fatal error): ([^\n]*)\n`)
	goFrame  = regexp.MustCompile(`(?m)^([^\s(][^\n]*)\([^\n]*\)\n\t([^\n]+):(\d+)`)
)

func goPanic(text string) (*evidence.Panic, int) {
	m := goReport.FindStringSubmatch(text)
	if m == nil || !strings.Contains(text, "\ngoroutine ") {
		return nil, 0
	}
	p := &evidence.Panic{Language: evidence.Go, Text: m[1]}
	for _, f := range goFrame.FindAllStringSubmatch(text[len(m[0]):], -1) {
		if name := f[1]; name != "panic" && !strings.HasPrefix(name, "runtime.") {
			p.Function, p.File, p.Line = name, f[2], number(f[3])
			break
		}
	}
	return p, len(text)
}

// pythonFrame matches a line of a Python traceback (CPython, Python/traceback.c), and pythonEnd its
// last line.
var (
	pythonFrame = regexp.MustCompile(`(?m)^  File "([^"\n]*)", line (\d+)(?:, in ([^\n]*))?$`)
	pythonEnd   = regexp.MustCompile(`(?m)^[^ \n][^\n]*\n?`)
)

func pythonError(text string) (*evidence.Panic, int) {
	head := strings.IndexByte(text, '\n') + 1
	if !strings.HasPrefix(text, "Traceback (most recent call last):\n") {
		return nil, 0
	}
	end := pythonEnd.FindStringIndex(text[head:])
	if end == nil {
		return nil, 0
	}
	frames := pythonFrame.FindAllStringSubmatch(text[:head+end[0]], -1)
	if len(frames) == 0 {
		return nil, 0
	}
	m := frames[len(frames)-1]
	p := &evidence.Panic{Language: evidence.Python, Text: strings.TrimSpace(text[head+end[0] : head+end[1]]), Function: m[3], File: m[1], Line: number(m[2])}
	return p, head + end[1]
}

func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}
