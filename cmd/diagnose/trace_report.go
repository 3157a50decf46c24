package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/internal/wording"
	"diagnose/replay/record/eventlog"
	"diagnose/reports"
	"diagnose/watchtrace"
)

// traceReport is a log to be shown.
type traceReport struct {
	log   *evidence.AccessLog
	calls map[watchtrace.CallKey]string
	limit int
	// events are those of the recording, for a form that shows what threads waited for.
	events *eventlog.Log
}

// short says which pass did not reach the recorded end; empty if all did.
func (r *traceReport) short() string {
	if l := evidence.LimitOf(r.log.Limits, evidence.LimitPassEnded); l != nil {
		return l.Text
	}
	return ""
}

// traceVersion is the version of shownTrace. reports/schema/trace-2.json describes it.
const traceVersion = "2.0"

// shownTrace is the JSON of a trace. Fields are added and never change their
// meaning.
type shownTrace struct {
	// Version of this form, MAJOR.MINOR.
	Version string `json:"version"`
	// Recording is its directory; Failed that the recorded run did.
	Recording string            `json:"recording"`
	Failed    bool              `json:"failed"`
	Coverage  evidence.Coverage `json:"coverage"`
	// Variables are the words that were watched.
	Variables []evidence.Watched   `json:"variables"`
	Threads   []evidence.ThreadRef `json:"threads"`
	// Accesses are in the order in which they were made.
	Accesses []shownAccess `json:"accesses"`
}

// shownAccess is one access. What may have 64 bits is a string.
type shownAccess struct {
	// Thread made it, after its Event of that number, which is at Position among those of all
	// threads.
	Thread   uint32 `json:"thread"`
	Position uint64 `json:"position"`
	Event    uint64 `json:"event"`
	// Access is read, write, read/write or unknown.
	Access string `json:"access"`
	// Variable is the watched word, with its offset where there are several.
	Variable string        `json:"variable"`
	Address  evidence.Addr `json:"address"`
	// Size is in bytes; Old and New are the word before and after.
	Size uint8         `json:"size"`
	Old  evidence.Addr `json:"old"`
	New  evidence.Addr `json:"new"`
	// PC is the instruction's, Function, File and Line are where it is.
	PC       evidence.Addr `json:"pc"`
	Function string        `json:"function,omitempty"`
	File     string        `json:"file,omitempty"`
	Line     int           `json:"line,omitempty"`
	// By is heap, kernel or the system call that made it; the program if it is
	// missing.
	By string `json:"by,omitempty"`
	// Handler is the signal whose handler ran.
	Handler string `json:"handler,omitempty"`
	// Locks are what the thread held.
	Locks []string `json:"locks,omitempty"`

	signed bool
}

func (r *traceReport) access(a *evidence.Access) shownAccess {
	v := &r.log.Variables[a.Variable]
	site := &r.log.Contexts[a.Context].Site
	x := shownAccess{
		Thread: a.Thread, Position: a.Position, Event: a.Ordinal, Access: string(a.Kind.Kind()), Variable: v.Name,
		Address: v.Address + evidence.Addr(a.Offset), Size: a.Size, Old: evidence.Addr(a.Old), New: evidence.Addr(a.New), PC: a.PC,
		Function: site.Function, File: site.File, Line: site.Line, By: byText(a, r.calls[watchtrace.CallKey{Thread: a.Thread, Ordinal: a.Ordinal}]),
	}
	if a.Kind == evidence.CodeUnknown {
		x.Access = "unknown"
	}
	if v.Size > int(a.Size) {
		x.Variable += fmt.Sprintf("+%#x", a.Offset)
	}
	x.signed = v.Size == int(a.Size) && signedType.MatchString(v.Type)
	if a.Handler != 0 {
		x.Handler = unix.SignalName(unix.Signal(a.Handler))
	}
	for _, l := range r.log.LockSets[a.Locks] {
		name := l.Name
		if name == "" {
			name = l.Address.String()
		}
		x.Locks = append(x.Locks, name)
	}
	return x
}

func (r *traceReport) json(w io.Writer) error {
	shown := shownTrace{Version: traceVersion, Recording: r.log.Recording, Failed: r.log.Failed, Coverage: r.log.Coverage, Variables: r.log.Variables,
		Threads: []evidence.ThreadRef{}, Accesses: make([]shownAccess, 0, len(r.log.Accesses))}
	for i := range uint32(len(r.log.Threads) + 1) {
		if t, found := r.log.Threads[i]; found {
			shown.Threads = append(shown.Threads, t)
		}
	}
	for i := range r.log.Accesses {
		shown.Accesses = append(shown.Accesses, r.access(&r.log.Accesses[i]))
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(shown)
}

// table shows the last accesses: people look for the end.
func (r *traceReport) table(w io.Writer) error {
	out := &reports.Listing{}
	accesses := r.log.Accesses
	if r.limit > 0 && len(accesses) > r.limit {
		out.Line("the last %d of %d accesses; --limit 0 shows all", r.limit, len(accesses))
		out.Gap()
		accesses = accesses[len(accesses)-r.limit:]
	}
	var rows [][]string
	for i := range accesses {
		x := r.access(&accesses[i])
		rows = append(rows, []string{fmt.Sprint(x.Thread), fmt.Sprint(x.Event), x.Access, x.Variable, valueText(&x), x.where(), strings.Join(x.Locks, ", ")})
	}
	if len(rows) > 0 {
		out.Table([]reports.Column{{Name: "Thread", Number: true}, {Name: "Event", Number: true}, {Name: "Access"}, {Name: "Variable"}, {Name: "Value"},
			{Name: "Where"}, {Name: "Locks"}}, rows)
	}
	out.Gap()
	r.summary(out)
	return out.WriteText(w)
}

// signedType are the names of C's and Rust's signed integers.
var signedType = regexp.MustCompile(`^((const|volatile|signed) )*(int|char|(long |short )+int|long|short|ssize_t|int(8|16|32|64)_t|ptrdiff_t|i(8|16|32|64|size))$`)

func valueText(x *shownAccess) string {
	if x.Access == string(evidence.Read) || x.Old == x.New {
		return x.number(x.New)
	}
	return x.number(x.Old) + " -> " + x.number(x.New)
}

func (x *shownAccess) number(v evidence.Addr) string {
	const small = 1 << 16
	if shift := 64 - 8*x.Size; x.signed && int64(v)<<shift < 0 {
		return fmt.Sprint(int64(v) << shift >> shift)
	}
	if v < small {
		return fmt.Sprint(uint64(v))
	}
	return v.String()
}

func (x *shownAccess) where() string {
	text := x.PC.String()
	switch {
	case x.Function == "_start":
		text = "outside of main"
	case x.Line != 0:
		text = fmt.Sprintf("%s %s:%d", x.Function, filepath.Base(x.File), x.Line)
	case x.Function != "":
		text = x.Function
	}
	if x.By != "" {
		text += " by " + x.By
	}
	if x.Handler != "" {
		text += " in the handler of " + x.Handler
	}
	return text
}

func (r *traceReport) summary(out *reports.Listing) {
	for i := range r.log.Variables {
		v := &r.log.Variables[i]
		switch {
		case v.Untraced != "":
			out.Line("%s was not traced: %s", v.Name, v.Untraced)
		case v.Instructions > 0:
			out.Line("%s: %s of %s, pass %d; it changed %s without them", v.Name, wording.Count(v.Hits, "access"),
				wording.Count(uint64(v.Instructions), "known instruction"), v.Pass, wording.Count(v.Unseen, "time"))
		default:
			out.Line("%s: %s, pass %d", v.Name, wording.Count(v.Hits, "access"), v.Pass)
		}
	}
	c := &r.log.Coverage
	passes := wording.Count(uint64(c.Passes), "pass")
	if c.Backend != "" {
		passes += " by " + c.Backend
	}
	out.Line("%s, %s, %d lost, in %v", passes, wording.Count(c.Hits, "access"), c.Lost, time.Duration(c.Nanoseconds).Round(time.Millisecond))
	for _, l := range c.Limits {
		out.Line("limit: %s", l.Text)
	}
}
