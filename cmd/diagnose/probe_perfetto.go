package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"diagnose/probe"
)

// perfetto writes the rows in the Trace Event Format. A replay has no clock, so time is the order of the rows, one a microsecond.
func (r *probeReport) perfetto(w io.Writer) error {
	events := []chromeEvent{{Name: "process_name", Phase: "M", PID: 1, Args: map[string]any{"name": filepath.Base(r.log.Recording)}}}
	threads := map[uint32]bool{}
	open := map[uint64]int{} // the events of calls by their number
	for i := range r.log.Rows {
		row := &r.log.Rows[i]
		kind := r.log.Places[row.Place].Kind
		if n := row.Moment.Thread; !threads[n] {
			threads[n] = true
			events = append(events, chromeEvent{Name: "thread_name", Phase: "M", PID: 1, TID: n, Args: map[string]any{"name": fmt.Sprintf("thread %d", n)}})
		}
		if at, known := open[row.Call]; known && kind == probe.KindReturn {
			lasting(&events[at], float64(i+1), r.arguments(row))
			delete(open, row.Call)
			continue
		}
		if kind == probe.KindCall && !r.log.Places[row.Place].Inlined {
			open[row.Call] = len(events)
		}
		events = append(events, chromeEvent{Name: r.whereRow(row), Category: string(kind), Phase: "i", Scope: "t", Time: float64(i + 1), PID: 1,
			TID: row.Moment.Thread, Args: r.arguments(row)})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(map[string]any{"traceEvents": events, "otherData": map[string]any{"recording": r.log.Recording}})
}

// lasting makes a call last until its return.
func lasting(x *chromeEvent, until float64, result map[string]any) {
	x.Phase, x.Scope, x.Duration = "X", "", until-x.Time
	for name, value := range result {
		if _, known := x.Args[name]; known {
			name = "return " + name
		}
		x.Args[name] = value
	}
}

// arguments are the values of a row.
func (r *probeReport) arguments(row *probe.Row) map[string]any {
	args := map[string]any{"moment": row.Moment.String(), "position": row.Position}
	if row.Event != "" {
		args["call"] = row.Event
	}
	for i := range row.Values {
		args[row.Values[i].Name] = valueOf(&row.Values[i].Value)
	}
	return args
}
