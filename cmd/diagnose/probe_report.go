package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"diagnose/evidence"
	"diagnose/internal/wording"
	"diagnose/probe"
	"diagnose/reports"
)

// probeReport is the answer to a probe, to be shown.
type probeReport struct {
	log *probe.Log
	// failure is why the replay ended early; nil: it did not.
	failure error
	// placed are the names of places, by their index.
	placed map[int]string
}

// short says why the replay is not as recorded; empty: it is.
func (r *probeReport) short() string {
	if r.failure != nil {
		return wording.Bare(r.failure)
	}
	if c := r.log.Replay.Comparison; c != nil && !c.Identical() {
		return "the end of the replay differs from the recorded one"
	}
	return ""
}

// probeVersion is the version of shownProbe. reports/schema/probe-1.json describes it.
const probeVersion = "1.2"

// shownProbe is the JSON of the answer to a probe. Fields are added and never change their meaning.
type shownProbe struct {
	// Version of this form, MAJOR.MINOR.
	Version string `json:"version"`
	// Recording is its directory; Failed that the recorded run did.
	Recording string `json:"recording"`
	Failed    bool   `json:"failed"`
	// Places are those that the question led to.
	Places []shownPlace `json:"places"`
	// Rows are in the order in which the places were reached.
	Rows []shownRow `json:"rows"`
	// Code are the blocks of debug code.
	Code []shownCode `json:"code,omitempty"`
	// Arrivals counts how often a thread reached a place; Held how often the condition held.
	Arrivals uint64 `json:"arrivals"`
	Held     uint64 `json:"held"`
	// Undecided counts how often the condition had no value; Reason is that of the first time.
	Undecided uint64 `json:"undecided"`
	Reason    string `json:"reason,omitempty"`
	// Cut: the replay ended at the bound of rows, so there may be more.
	Cut bool `json:"cut"`
	// Moved and Trapped count the instructions by how threads were stopped there: in a moved copy
	// of the code, or at an int3.
	Moved   int `json:"moved"`
	Trapped int `json:"trapped"`
	// Handled counts the arrivals that code in the process handled, Asked those at which a thread waited in its code for the tool's
	// answer, Stops those at which a thread was stopped.
	Handled uint64 `json:"handled"`
	Asked   uint64 `json:"asked"`
	Stops   uint64 `json:"stops"`
	// Identical says whether the end of the replay was as recorded; it is missing if that was not
	// compared.
	Identical *bool `json:"identical,omitempty"`
	// Ended is why the replay ended before the recorded end; it is missing if it did not.
	Ended string `json:"ended,omitempty"`
	// Nanoseconds is the time that the answer took.
	Nanoseconds int64 `json:"nanoseconds"`
}

// shownPlace is a place that was asked about.
type shownPlace struct {
	// Kind is line, call, return, syscall, signal, write or code; Asked is the place as the question named it.
	Kind  string `json:"kind"`
	Asked string `json:"asked"`
	// PC is the instruction, 0 for events; Function, File and Line are where it is.
	PC       evidence.Addr `json:"pc"`
	Function string        `json:"function,omitempty"`
	File     string        `json:"file,omitempty"`
	Line     int           `json:"line,omitempty"`
	// Inlined: the function was inlined there.
	Inlined bool `json:"inlined"`
	// Hits counts how often a thread came there.
	Hits uint64 `json:"hits"`
	// Unreachable: threads could not be stopped there, so it was not observed.
	Unreachable bool `json:"unreachable"`
	// Missed counts the returns that could not be observed. Left counts the calls of which no return was seen although the thread
	// continued elsewhere: they were left by longjmp or an exception, ended by calling another function through the same pointer,
	// or have a stack of their own that waits.
	Missed uint64 `json:"missed"`
	Left   uint64 `json:"left"`
	// Inferred: the compiler says of no statement of the line that it begins in this function; the
	// place is an instruction of the line, which may also be executed where the line is not.
	Inferred bool `json:"inferred"`
	// Code is an index into code, for a place of debug code. Others are further instructions at which code of the line begins in the
	// same function; debug code does not run there, and the place is inferred.
	Code   *int            `json:"code,omitempty"`
	Others []evidence.Addr `json:"others,omitempty"`
}

// shownRow is one time that a thread reached a place.
type shownRow struct {
	// Moment is what 'diagnose replay --until' takes.
	Moment string `json:"moment"`
	// Thread came there, after its Event of that number, which is at Position among those of all
	// threads.
	Thread   uint32 `json:"thread"`
	Event    uint64 `json:"event"`
	Position uint64 `json:"position"`
	// Place is an index into places.
	Place int `json:"place"`
	// Call is the system call or the signal.
	Call string `json:"call,omitempty"`
	// Number is that of the call of a function, equal for its entry and its return.
	Number uint64 `json:"number,omitempty"`
	// Function, File and Line are where a write was made.
	Function string `json:"function,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	// Values are the expressions with their values.
	Values []evidence.Variable `json:"values"`
	// Stack has the innermost function first.
	Stack []string `json:"stack,omitempty"`
	// Printed is what debug code printed. Failure is why it did not run to its end.
	Printed string            `json:"printed,omitempty"`
	Failure *shownCodeFailure `json:"failure,omitempty"`
}

func (r *probeReport) shown() *shownProbe {
	l := r.log
	s := &shownProbe{Version: probeVersion, Recording: l.Recording, Failed: l.Failed, Places: []shownPlace{}, Rows: make([]shownRow, 0, len(l.Rows)),
		Code: r.shownCode(), Arrivals: l.Arrivals, Held: l.Held, Undecided: l.Undecided, Reason: l.Reason.Why(), Cut: l.Cut,
		Moved: l.Replay.Moved, Trapped: l.Replay.Trapped, Handled: l.Replay.Handled, Asked: l.Replay.Asked, Stops: l.Replay.Stopped(), Nanoseconds: int64(l.Elapsed)}
	for i := range l.Places {
		p := &l.Places[i]
		shown := shownPlace{Kind: string(p.Kind), Asked: p.Asked, PC: p.PC, Function: p.Site.Function, File: p.Site.File, Line: p.Site.Line,
			Inlined: p.Inlined, Hits: p.Hits, Unreachable: p.Unreachable, Missed: p.Missed, Left: p.Left, Inferred: p.Inferred, Others: p.Others}
		if p.Kind == probe.KindCode {
			shown.Code = &p.Code
		}
		s.Places = append(s.Places, shown)
	}
	for i := range l.Rows {
		w := &l.Rows[i]
		values := w.Values
		if values == nil {
			values = []evidence.Variable{}
		}
		s.Rows = append(s.Rows, shownRow{Moment: w.Moment.String(), Thread: w.Moment.Thread, Event: w.Moment.Ordinal, Position: w.Position,
			Place: w.Place, Call: w.Event, Number: w.Call, Function: w.Site.Function, File: w.Site.File, Line: w.Site.Line, Values: values, Stack: w.Stack,
			Printed: w.Printed, Failure: shownFailure(w.Failure)})
	}
	if c := l.Replay.Comparison; c != nil {
		identical := c.Identical()
		s.Identical = &identical
	}
	if r.failure != nil {
		s.Ended = wording.Bare(r.failure)
	}
	return s
}

func (r *probeReport) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(r.shown())
}

// valueOf is a value in a cell.
func valueOf(v *evidence.Value) string {
	if v.Unavailable != "" {
		return "<" + v.Why() + ">"
	}
	return v.Text
}

// cells returns the columns of the rows after the moment and the place, and their values. One is what debug code printed, if wanted.
func (r *probeReport) cells(printed bool) (names []string, cells [][]string) {
	events, stacks := false, false
	for i := range r.log.Rows {
		events = events || r.log.Rows[i].Event != ""
		stacks = stacks || len(r.log.Rows[i].Stack) > 0
	}
	columns := r.log.Columns()
	if events {
		names = append(names, "Call")
	}
	names = append(names, columns...)
	if stacks {
		names = append(names, "Stack")
	}
	printed = printed && len(r.log.Code) > 0
	if printed {
		names = append(names, "Printed")
	}
	for i := range r.log.Rows {
		w := &r.log.Rows[i]
		var row []string
		if events {
			row = append(row, w.Event)
		}
		for _, name := range columns {
			text := ""
			for k := range w.Values {
				if w.Values[k].Name == name {
					text = valueOf(&w.Values[k].Value)
				}
			}
			row = append(row, text)
		}
		if stacks {
			row = append(row, strings.Join(w.Stack, " < "))
		}
		if printed {
			text := w.Printed
			if w.Failure != nil {
				text += codeFailure(w.Failure)
			}
			row = append(row, text)
		}
		cells = append(cells, row)
	}
	return names, cells
}

func (r *probeReport) where(place int) string {
	p := &r.log.Places[place]
	text := p.Site.Function
	if p.Site.Line != 0 {
		text += fmt.Sprintf(" %s:%d", filepath.Base(p.Site.File), p.Site.Line)
	}
	if p.PC == 0 {
		text = p.Asked
	}
	if p.Kind == probe.KindReturn {
		text = "return of " + p.Site.Function
	}
	return text
}

// whereRow is where a row is: of a write its line, of others their place.
func (r *probeReport) whereRow(x *probe.Row) string {
	if r.log.Places[x.Place].Kind != probe.KindWrite {
		if r.placed == nil {
			r.placed = map[int]string{}
		}
		text, known := r.placed[x.Place]
		if !known {
			text = r.where(x.Place)
			r.placed[x.Place] = text
		}
		return text
	}
	if x.Site.Line == 0 {
		return x.Site.Function
	}
	return fmt.Sprintf("%s %s:%d", x.Site.Function, filepath.Base(x.Site.File), x.Site.Line)
}

func (r *probeReport) table(w io.Writer) error {
	if err := r.writeCode(w); err != nil {
		return err
	}
	out := &reports.Listing{}
	names, cells := r.cells(false)
	columns := []reports.Column{{Name: "Moment"}, {Name: "Position", Number: true}, {Name: "Where"}}
	for _, name := range names {
		columns = append(columns, reports.Column{Name: name})
	}
	var rows [][]string
	for i, row := range cells {
		x := &r.log.Rows[i]
		if r.log.Places[x.Place].Kind == probe.KindCode {
			continue
		}
		rows = append(rows, append([]string{x.Moment.String(), fmt.Sprint(x.Position), r.whereRow(x)}, row...))
	}
	if len(rows) > 0 {
		out.Table(columns, rows)
		out.Gap()
	}
	r.summary(out)
	return out.WriteText(w)
}

func (r *probeReport) summary(out *reports.Listing) {
	l := r.log
	for i := range l.Places {
		p := &l.Places[i]
		text := fmt.Sprintf("%s %s: ", p.Kind, p.Asked)
		if p.PC != 0 {
			text += fmt.Sprintf("%s at %v", r.where(i), p.PC)
			if p.Inlined {
				text += ", inlined"
			}
			if p.Inferred && len(p.Others) > 0 {
				text += fmt.Sprintf(", inferred: the line has code in %s of the function, and this is the first", wording.Count(uint64(len(p.Others)+1), "place"))
			} else if p.Inferred {
				text += ", inferred: an instruction of the line, of which no statement begins there"
			}
			text += ", "
		}
		if p.Unreachable {
			out.Line("%sthreads could not be stopped there", text)
			continue
		}
		if p.Kind == probe.KindWrite {
			out.Line("%sseen %s", text, wording.Count(p.Hits, "time"))
			continue
		}
		text += "reached " + wording.Count(p.Hits, "time")
		if p.Missed > 0 {
			text += fmt.Sprintf(", %s could not be observed", wording.Count(p.Missed, "return"))
		}
		if p.Left > 0 {
			text += fmt.Sprintf(", %s had no return that was seen", wording.Count(p.Left, "call"))
		}
		out.Line("%s", text)
	}
	r.summarizeCode(out)
	if l.Undecided > 0 {
		out.Line("the condition had no value %s: %s", wording.Count(l.Undecided, "time"), l.Reason.Why())
	}
	for _, x := range l.Limits {
		out.Line("limit: %s", x.Text)
	}
	text := fmt.Sprintf("%s of %s, %d in the process, %d by questions and %d by stops, by %s in moved code and %d at int3, in %v", wording.Count(uint64(len(l.Rows)), "row"),
		wording.Count(l.Arrivals, "arrival"), l.Replay.Handled, l.Replay.Asked, l.Replay.Stopped(),
		wording.Count(uint64(l.Replay.Moved), "instruction"), l.Replay.Trapped, l.Elapsed.Round(time.Millisecond))
	if len(l.Places) > 0 && l.Places[0].Kind == probe.KindWrite {
		text = fmt.Sprintf("%s of %s, in %v", wording.Count(uint64(len(l.Rows)), "row"), wording.Count(l.Arrivals, "write"), l.Elapsed.Round(time.Millisecond))
	}
	switch {
	case l.Cut && len(l.Places) > 0 && l.Places[0].Kind == probe.KindWrite:
		text += "; there are more, --max 0 shows all"
	case l.Cut:
		text += "; the replay ended there, --max 0 shows all"
	case uint64(len(l.Rows)) < l.Held:
		text += fmt.Sprintf("; the first of %d, --max 0 shows all", l.Held)
	}
	out.Line("%s", text)
	if c := l.Replay.Comparison; c != nil && c.Identical() {
		out.Line("the replay ended identical to the recording")
	}
}

func (r *probeReport) csv(w io.Writer) error {
	out := csv.NewWriter(w)
	names, cells := r.cells(true)
	if err := out.Write(append([]string{"moment", "thread", "event", "position", "where"}, names...)); err != nil {
		return err
	}
	for i, row := range cells {
		x := &r.log.Rows[i]
		line := []string{x.Moment.String(), fmt.Sprint(x.Moment.Thread), strconv.FormatUint(x.Moment.Ordinal, 10), strconv.FormatUint(x.Position, 10)}
		for _, cell := range append([]string{r.whereRow(x)}, row...) {
			line = append(line, reports.Clean(cell))
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
