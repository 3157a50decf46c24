package ending

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// writes are a thread's writes to standard error.
func writes(texts ...string) *found {
	f := &found{}
	for i, text := range texts {
		f.writes = append(f.writes, &call{moment: evidence.Moment{Thread: 1, Ordinal: uint64(i + 1)}, position: uint64(i + 1), stream: evidence.StandardError,
			text: []byte(text), result: int64(len(text))})
	}
	return f
}

func TestReports(t *testing.T) {
	for _, x := range []struct {
		name   string
		writes []string
		want   *evidence.Panic // Message is where the report is
		others []string
	}{
		{"rust", []string{"ready\n", "\nthread 'main' (12) panicked at src/main.rs:9:53:\ncalled `Option::unwrap()`\nnote: run with\n"},
			&evidence.Panic{Language: evidence.Rust, Text: "called `Option::unwrap()`", File: "src/main.rs", Line: 9, Message: 1}, []string{"ready\n"}},
		{"rust in pieces", []string{"thread 'w' panicked at a.rs:1:2:\n", "assertion failed\n", "  left: 1\n", " right: 2\n", "stack backtrace:\n", "   0: f\n", "note: x\n", "joined\n"},
			&evidence.Panic{Language: evidence.Rust, Text: "assertion failed", File: "a.rs", Line: 1, Message: 0}, []string{"joined\n"}},
		{"old rust", []string{"thread 'main' panicked at 'no\nport', src/a.rs:3:4\n", "bye\n"},
			&evidence.Panic{Language: evidence.Rust, Text: "no\nport", File: "src/a.rs", Line: 3, Message: 0}, []string{"bye\n"}},
		{"go", []string{"panic: ", "boom", "\n", "\n", "goroutine 1 [running]:\n", "panic({0x1, 0x2})\n\t/go/panic.go:9 +0x1\n", "main.f(0x1)\n\t/src/m.go:7 +0x2\n"},
			&evidence.Panic{Language: evidence.Go, Text: "boom", Function: "main.f", File: "/src/m.go", Line: 7, Message: 0}, nil},
		{"python", []string{"Traceback (most recent call last):\n", "  File \"a.py\", line 8, in <module>\n", "    main()\n", "  File \"b.py\", line 3, in load\n", "KeyError: 'port'\n", "bye\n"},
			&evidence.Panic{Language: evidence.Python, Text: "KeyError: 'port'", Function: "load", File: "b.py", Line: 3, Message: 0}, []string{"bye\n"}},
		{"no report", []string{"panic: said a program\n", "Traceback (most recent call last):\n", "thread 'a' was stopped\n"}, nil,
			[]string{"panic: said a program\n", "Traceback (most recent call last):\n", "thread 'a' was stopped\n"}},
	} {
		f := writes(x.writes...)
		e := f.told(f.messages())
		switch {
		case (e.Panic == nil) != (x.want == nil):
			t.Errorf("%s: %+v, want %+v", x.name, e.Panic, x.want)
		case e.Panic != nil:
			x.want.Proof = evidence.Replayed
			if *e.Panic != *x.want {
				t.Errorf("%s: %+v, want %+v", x.name, e.Panic, x.want)
			}
		}
		var others []string
		for i, m := range e.Messages {
			if e.Panic == nil || e.Panic.Message != i {
				others = append(others, m.Text)
			}
		}
		if strings.Join(others, "|") != strings.Join(x.others, "|") {
			t.Errorf("%s: besides the report %q, want %q", x.name, others, x.others)
		}
	}
}

// Omitted messages are counted. If the beginning of a long text is cut in a word, the rest of the
// word is dropped as well.
func TestBounds(t *testing.T) {
	var texts []string
	for range mostMessages + 3 {
		texts = append(texts, "part of ", "a line\n")
	}
	texts = append(texts, "password="+strings.Repeat("x", mostText+10)+" for all\n")
	f := writes(texts...)
	e := f.told(f.messages())
	if len(e.Messages) != mostMessages || e.EarlierMessages != 2*4 {
		t.Errorf("%d messages, %d earlier writes", len(e.Messages), e.EarlierMessages)
	}
	last := e.Messages[len(e.Messages)-1]
	if last.Text != "for all\n" || last.Omitted != mostText+10+len("password= ") {
		t.Errorf("%q, %d bytes left out", last.Text, last.Omitted)
	}
	if m := e.Messages[0]; m.Text != "part of a line\n" || m.Moment.Ordinal != 9 {
		t.Errorf("%+v", m)
	}
	if text, omitted := cutFront(strings.Repeat("x", mostText+1)); text != "" || omitted != mostText+1 {
		t.Errorf("%d bytes of a word are kept", len(text))
	}
}

func TestFailedCalls(t *testing.T) {
	const open, stat, futex, ioctl = 2, 4, 202, 16
	event := func(number uint64, result int64) *eventlog.Event {
		return &eventlog.Event{Kind: eventlog.KindSyscall, Thread: 1, Object: number, Result: result, Args: []uint64{3, 4, 5}}
	}
	for _, x := range []struct {
		number uint64
		result int64
		want   bool
	}{{open, -2, true}, {open, 3, false}, {open, -11, false}, {futex, -110, false}, {ioctl, -25, false}, {open, -512, false}, {open, -5000, false}} {
		if got := tells(event(x.number, x.result)); got != x.want {
			t.Errorf("call %d with result %d: %v", x.number, x.result, got)
		}
	}
	r := &recent{most: mostFailed}
	for i := range 5 {
		r.addOnce(newCall(event(open, -2), uint64(i), evidence.ThreadRef{}, ""))
	}
	for i := range 5 {
		e := event(stat, -2)
		e.Args[0] = uint64(i)
		r.addOnce(newCall(e, uint64(10+i), evidence.ThreadRef{}, ""))
	}
	f := &found{}
	for i := range r.list {
		f.failed = append(f.failed, &r.list[i])
	}
	f.candidates(nil)
	f.choose(nil)
	if len(f.failed) != 1+mostProbes || f.failed[0].times != 5 || f.failed[0].position != 4 || f.earlierFailed != 3 {
		t.Errorf("%d calls, the first %d times, %d earlier ones", len(f.failed), f.failed[0].times, f.earlierFailed)
	}
	within := &report{writes: []*call{{moment: evidence.Moment{Thread: 1}, position: 0}, {moment: evidence.Moment{Thread: 1}, position: 100}}}
	f.candidates([]*message{{writes: within.writes, report: within}})
	if len(f.failed) != 0 {
		t.Errorf("%d calls of the runtime's report are told", len(f.failed))
	}
}

func TestSocketAddress(t *testing.T) {
	for want, b := range map[string][]byte{
		"127.0.0.1:80":   {2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0},
		"[::1]:5432":     append([]byte{10, 0, 0x15, 0x38, 0, 0, 0, 0}, append(make([]byte, 15), 1)...),
		`"/run/db.sock"`: append([]byte{1, 0}, "/run/db.sock\x00rest"...),
		`"@name"`:        append([]byte{1, 0, 0}, "name"...),
		"":               {2},
	} {
		if got := socketAddress(b); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A report explains an exit only with the runtime's status, by the thread that exits, and if
// nothing was written after it.
func TestExplains(t *testing.T) {
	said := func(stream evidence.Stream, thread uint32) evidence.Message {
		return evidence.Message{Stream: stream, Seen: evidence.Seen{Moment: evidence.Moment{Thread: thread}}}
	}
	for _, x := range []struct {
		language evidence.Language
		status   int
		reported uint32
		later    evidence.Stream
		want     bool
	}{
		{evidence.Rust, 101, 1, "", true}, {evidence.Rust, 101, 1, evidence.StandardOutput, true}, {evidence.Rust, 101, 1, evidence.StandardError, false},
		{evidence.Rust, 101, 2, "", false}, {evidence.Rust, 2, 1, "", false},
		{evidence.Go, 2, 3, evidence.StandardError, true}, {evidence.Go, 1, 1, "", false},
		{evidence.Python, 1, 1, "", true}, {evidence.Python, 3, 1, "", false}, {evidence.Python, 1, 2, "", false},
	} {
		e := &evidence.Ending{Messages: []evidence.Message{said(evidence.StandardError, x.reported)}, Panic: &evidence.Panic{Language: x.language}}
		if x.later != "" {
			e.Messages = append(e.Messages, said(x.later, 1))
		}
		if got := explains(e, record.Outcome{Status: x.status, Thread: 1}); got != x.want {
			t.Errorf("%+v: %v", x, got)
		}
	}
}

// A shell's search for a program in directories gives calls with the same buffer and different paths.
func TestExecutions(t *testing.T) {
	x := executions{}
	var words []string
	for _, path := range []string{"/bin/a", "/usr/bin/a"} {
		x.complete(&eventlog.Event{Kind: eventlog.KindExec, Thread: 1, Payloads: []eventlog.Payload{{Addr: 0x7ffe0000, Kind: eventlog.PayloadText, Data: []byte(path)}}})
		e := &eventlog.Event{Kind: eventlog.KindSyscall, Thread: 1, Object: 59, Result: -2, Args: []uint64{0x7ffe0000, 0, 0}}
		x.complete(e)
		c := newCall(e, 1, evidence.ThreadRef{}, "")
		words = append(words, c.words)
	}
	if got := strings.Join(words, "; "); got != `execve("/bin/a", 0, 0); execve("/usr/bin/a", 0, 0)` {
		t.Error(got)
	}
}

// failedOpen is an open of a path that failed, by code at pc.
func failedOpen(position uint64, path string, pc evidence.Addr) *call {
	e := &eventlog.Event{Kind: eventlog.KindSyscall, Thread: 1, Object: 2, Result: -2, Args: []uint64{0x1000, 0, 0},
		Payloads: []eventlog.Payload{{Addr: 0x1000, Kind: eventlog.PayloadText, Data: []byte(path)}}}
	c := newCall(e, position, evidence.ThreadRef{}, "")
	c.seen = true
	c.stack.Frames = []evidence.Frame{{Site: evidence.Site{PC: pc}, CFA: 0x7000}}
	return &c
}

// A search through directories is one entry with all paths, and a message puts the calls before it in
// their place: the ones that it names, and a few others.
func TestChosenCalls(t *testing.T) {
	calls := func() (list []*call) {
		for i := range 5 {
			list = append(list, failedOpen(uint64(1+i), fmt.Sprintf("/%c/x.conf", 'a'+i), 0x10))
		}
		for i := range 10 {
			list = append(list, failedOpen(uint64(10+i), fmt.Sprintf("/lib/other%d", i), evidence.Addr(0x100+i)))
		}
		return list
	}
	for _, x := range []struct {
		name, text string
		want       []string // the paths that are reported
		alike      int
	}{
		{"no message", "", []string{"/lib/other2", "/lib/other3", "/lib/other4", "/lib/other5", "/lib/other6", "/lib/other7", "/lib/other8", "/lib/other9"}, 0},
		{"a message", "no configuration\n", []string{"/lib/other6", "/lib/other7", "/lib/other8", "/lib/other9"}, 0},
		{"a message that names one", "cannot read x.conf: no such file\n", []string{"/e/x.conf", "/lib/other6", "/lib/other7", "/lib/other8", "/lib/other9"}, 4},
		{"a report", "Traceback (most recent call last):\n  File \"/lib/other3\", line 3, in load\nKeyError: 'x'\n", []string{"/lib/other8", "/lib/other9"}, 0},
		{"a report that names one", "Traceback (most recent call last):\n  File \"/lib/other3\", line 3, in load\nOSError: '/b/x.conf'\n", []string{"/e/x.conf"}, 4},
	} {
		f := &found{}
		if x.text != "" {
			f = writes(x.text)
			f.writes[0].position = 50
		}
		f.failed = calls()
		messages := f.messages()
		f.candidates(messages)
		f.fold()
		f.choose(messages)
		e := f.told(messages)
		var got []string
		reported := 0
		for i, c := range f.failed {
			got = append(got, c.paths()[0])
			reported += 1 + len(c.alike)
			if n := len(e.Calls[i].AlikePaths); c.paths()[0] == "/e/x.conf" && (n != x.alike || e.Calls[i].Alike != n || e.Calls[i].AlikePaths[0] != "/a/x.conf") {
				t.Errorf("%s: %+v", x.name, e.Calls[i])
			}
		}
		if !slices.Equal(got, x.want) || reported+e.EarlierCalls != 15 {
			t.Errorf("%s: %q and %d others, want %q", x.name, got, e.EarlierCalls, x.want)
		}
	}
}

func TestNamesPath(t *testing.T) {
	for _, x := range []struct {
		text, path string
		want       bool
	}{
		{"cannot open /etc/x.conf: no such file", "/etc/x.conf", true}, {"x.conf missing", "/etc/x.conf", true}, {"'x.conf'", "/etc/x.conf", true},
		{"ax.conf", "/etc/x.conf", false}, {"x.config", "/etc/x.conf", false}, {"a tool", "/bin/a", false}, {"sh: tool: not found", "/bin/tool", true},
	} {
		if got := namesPath(x.text, x.path); got != x.want {
			t.Errorf("%q names %s: %v", x.text, x.path, got)
		}
	}
}

// Of a long write the line with the byte that differs is shown.
func TestDiffering(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, x := range []struct {
		text string
		at   int64
		want string
	}{{"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\nc\n", 0, "a\nb\nc\n"}, {"a\nb\nc\n", 3, "b\nc\n"}, {long, 250, long[50:]}, {"a", 9, "a"}} {
		if got, omitted := differing(x.text, x.at); got != x.want || omitted != len(x.text)-len(x.want) {
			t.Errorf("byte %d: %q, %d are left out", x.at, got, omitted)
		}
	}
}
