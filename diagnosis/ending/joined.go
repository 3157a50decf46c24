package ending

import (
	"regexp"

	"diagnose/evidence"
	"diagnose/replay/record/eventlog"
)

// join is the end of a wait for a thread's end.
type join struct {
	by, of   uint32
	position uint64
}

// joinOf is the join of an event; false if it is none that succeeded.
func joinOf(e *eventlog.Event, position uint64) (join, bool) {
	return join{by: e.Thread, of: uint32(e.Object), position: position}, e.Kind == eventlog.KindJoin && e.Result == 0 && e.Object != uint64(e.Thread)
}

// mostJoins bounds the joins that are kept: the last ones.
const mostJoins = 1024

func (f *found) addJoin(j join) {
	if len(f.joins) == mostJoins {
		f.joins = f.joins[1:]
	}
	f.joins = append(f.joins, j)
}

// unwrapsPanic matches the message of a panic by which a thread unwraps the panic of another: the text of a Box<dyn Any + Send>, which
// the result of JoinHandle::join has (library/std/src/thread, library/core/src/any.rs).
var unwrapsPanic = regexp.MustCompile(`(?:^|: )Any \{ \.\. \}$`)

// origin is the panic of the thread whose result the thread of p unwrapped: the last that it had joined, if that ended by a panic. nil: p is
// the first panic itself, or which one it passes on is not known.
func (f *found) origin(p *report, reports []*report) *report {
	if p.panic.Language != evidence.Rust || !unwrapsPanic.MatchString(p.panic.Text) {
		return nil
	}
	first := p.writes[0]
	var last *join
	for i := range f.joins {
		if j := &f.joins[i]; j.by == first.moment.Thread && j.position < first.position {
			last = j
		}
	}
	if last == nil {
		return nil
	}
	var out *report
	for _, r := range reports {
		at := r.writes[len(r.writes)-1]
		switch {
		case r == p || at.position > first.position:
		case at.moment.Thread == first.moment.Thread && at.position > last.position:
			return nil // a panic that it caught itself may be the one
		case at.moment.Thread == last.of && at.position < last.position:
			out = r
		}
	}
	return out
}

// follow replaces the panic that ended the process by the one that it passes on.
func (f *found) follow(e *evidence.Ending, messages []*message) {
	const most = 16 // threads that join each other
	reports := reportsOf(messages)
	var now *report
	for _, r := range reports {
		if &r.panic == e.Panic {
			now = r
		}
	}
	if now == nil {
		return
	}
	ended := now.panic.Message
	for range most {
		before := f.origin(now, reports)
		if before == nil {
			break
		}
		now = before
	}
	if now.panic.Message != ended {
		e.Panic, now.panic.Joined = &now.panic, &ended
	}
}
