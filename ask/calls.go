package ask

import (
	"errors"

	"diagnose/evidence"
	"diagnose/probe"
)

// probed asks for arrivals of threads, and notes what they do not cover.
func (a *asker) probed(q probe.Question) (*probe.Log, error) {
	q.From, q.Until, q.Image = a.q.From, a.q.Until, a.q.Image
	q.Progress = func(p probe.Progress) {
		a.progress(Progress{Stage: StageReplay, Done: p.Events, Total: p.Total, Rows: uint64(p.Rows)})
	}
	log, err := probe.Ask(a.ctx, a.rec, &q)
	if log == nil {
		return nil, err
	}
	c := &a.answer.Coverage
	c.Replays++
	if err != nil {
		c.gap(Gap{Kind: GapEnded, Text: err.Error()})
	}
	a.answer.More = log.Cut
	var unreachable, unseen uint64
	for i := range log.Places {
		x := &log.Places[i]
		if x.Unreachable {
			unreachable++
		}
		unseen += x.Missed
	}
	if unreachable > 0 {
		c.gap(Gap{Kind: GapUnreachable, Count: unreachable})
	}
	if unseen > 0 {
		c.gap(Gap{Kind: GapReturns, Count: unseen})
	}
	return log, err
}

func placeOf(x *probe.Place) Place {
	p := Place{PC: x.PC, Site: x.Site, Hits: x.Hits, Inlined: x.Inlined, Proof: evidence.Replayed, Unreachable: x.Unreachable, Missed: x.Missed, Left: x.Left}
	if x.Inferred {
		p.Proof = evidence.Inferred
	}
	return p
}

// calls answers FormCalls. Of a function that was inlined everywhere there are no returns.
func (a *asker) calls() error {
	q := probe.Question{Calls: []string{a.q.Asked}, Returns: []string{a.q.Asked}, Most: 2 * a.q.Most}
	log, err := a.probed(q)
	var wrong *probe.Error
	if errors.As(err, &wrong) && log == nil {
		q.Returns = nil
		log, err = a.probed(q)
	}
	if log == nil {
		return err
	}
	places := map[int]int{} // by the probe's index
	for i := range log.Places {
		if x := &log.Places[i]; x.Kind == probe.KindCall {
			places[i] = len(a.answer.Places)
			a.answer.Places = append(a.answer.Places, placeOf(x))
		}
	}
	a.countReturns(log)
	open := map[uint64]int{} // calls by their number
	for i := range log.Rows {
		row := &log.Rows[i]
		at := instant(row.Moment, row.Position)
		if log.Places[row.Place].Kind == probe.KindReturn {
			if n, known := open[row.Call]; known {
				a.answer.Calls[n].Returned, a.answer.Calls[n].Result = &at, resultOf(row)
			}
			continue
		}
		if a.q.Most > 0 && len(a.answer.Calls) == a.q.Most {
			a.answer.More = true
			continue
		}
		if !log.Places[row.Place].Inlined {
			open[row.Call] = len(a.answer.Calls)
		}
		a.answer.Calls = append(a.answer.Calls, Call{Instant: at, Thread: row.Moment.Thread, Place: places[row.Place], Arguments: row.Values})
	}
	return err
}

// countReturns adds the counts of the returns of a function to the place of its calls.
func (a *asker) countReturns(log *probe.Log) {
	for i := range log.Places {
		x := &log.Places[i]
		for n := range a.answer.Places {
			if p := &a.answer.Places[n]; x.Kind == probe.KindReturn && p.PC == x.PC && !p.Inlined {
				p.Missed, p.Left = x.Missed, x.Left
			}
		}
	}
}

// resultOf is what a call returned; nil: its function returns nothing.
func resultOf(row *probe.Row) *evidence.Value {
	for i := range row.Values {
		if row.Values[i].Name == probe.Result {
			return &row.Values[i].Value
		}
	}
	return nil
}
