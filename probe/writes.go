package probe

import (
	"context"
	"errors"
	"time"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/watchtrace"
)

// The names by which rows of writes have the values before and after.
const (
	Old = "$old"
	New = "$new"
)

// writes answers a question about writes: a trace finds them, and a second replay evaluates the expressions right after each.
func (r *run) writes(ctx context.Context, started time.Time) (*Log, error) {
	plan, log, moments, err := r.trace(ctx)
	if err != nil {
		return nil, err
	}
	// Which writes a condition holds for is known when they are seen again.
	most := r.q.Most
	if most == 0 || r.q.If != "" {
		most = mostEvents
	}
	var indices []int
	for i := range log.Accesses {
		if x := &log.Accesses[i]; x.Kind == evidence.CodeRead || !plan.Since(x) || r.q.Thread != 0 && x.Thread != r.q.Thread {
			continue
		}
		if r.log.Cut = len(indices) == most; r.log.Cut {
			break
		}
		indices = append(indices, i)
	}
	rows := map[int]Row{}
	err = plan.Visit(ctx, log, indices, func(index int, _ *replay.Hit, s *replay.Stopped) error {
		defer r.close() // each pass has a process of its own
		row, holds, err := r.written(log, index, s)
		if holds {
			row.Moment = moments[index]
			rows[index] = row
			r.rows.Add(1)
		}
		return err
	})
	for _, i := range indices {
		if row, found := rows[i]; found {
			r.log.Rows = append(r.log.Rows, row)
		}
	}
	if n := r.q.Most; n > 0 && len(r.log.Rows) > n {
		r.log.Cut, r.log.Rows = true, r.log.Rows[:n]
	}
	r.log.Replay = &replay.Result{}
	r.log.Limits = log.Limits
	r.log.Elapsed = time.Since(started)
	return r.log, err
}

// trace finds the writes, and their moments.
func (r *run) trace(ctx context.Context) (*watchtrace.Plan, *evidence.AccessLog, []evidence.Moment, error) {
	var targets []watchtrace.Target
	err := watchtrace.AtEnd(ctx, r.rec, r.q.Image, func(p *image.Process) error {
		for i, text := range r.q.Writes {
			list, err := watchtrace.Resolve(p, text)
			var name *watchtrace.NameError
			if errors.As(err, &name) {
				return &Error{Asked: text, Problem: name.Problem, Nearest: name.Nearest}
			}
			if err != nil {
				return err
			}
			list[0].Writes = true
			targets = append(targets, list[0])
			r.log.Places = append(r.log.Places, Place{Kind: KindWrite, Asked: text})
			r.targets = append(r.targets, i)
		}
		return nil
	})
	if err != nil {
		return nil, nil, nil, err
	}
	options := watchtrace.Options{From: r.q.From, Until: r.q.Until, Image: r.q.Image, Progress: func(p watchtrace.Progress) {
		r.progress(uint64(p.Done), uint64(p.Passes))
	}}
	plan, err := watchtrace.NewPlan(r.rec, targets, options)
	if err != nil {
		return nil, nil, nil, err
	}
	log, err := plan.Trace(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	for i := range log.Variables {
		if v := &log.Variables[i]; v.Untraced != "" {
			return nil, nil, nil, &Error{Asked: r.q.Writes[i], Problem: "its writes cannot be traced: " + v.Untraced}
		}
	}
	var moments []evidence.Moment
	err = watchtrace.AtEnd(ctx, r.rec, r.q.Image, func(p *image.Process) error {
		all := make([]int, len(log.Accesses))
		for i := range all {
			all[i] = i
		}
		moments = watchtrace.Moments(p, log, all)
		return nil
	})
	return plan, log, moments, err
}

// written makes the row of a write. holds is false if the condition does not hold.
func (r *run) written(log *evidence.AccessLog, index int, s *replay.Stopped) (row Row, holds bool, err error) {
	access := &log.Accesses[index]
	x, err := r.open(s)
	if err != nil {
		return Row{}, false, err
	}
	l, place := r.log, r.targets[access.Variable]
	l.Arrivals++
	l.Places[place].Hits++
	v := &log.Variables[access.Variable]
	typ := watchtrace.TypeNamed(r.process, v.Type)
	values := []evidence.Variable{
		{Name: Old, Value: evidence.Value{Text: watchtrace.TextOf(r.process, access.Old, typ, int(access.Size))}},
		{Name: New, Value: evidence.Value{Text: watchtrace.TextOf(r.process, access.New, typ, int(access.Size))}},
	}
	a, scope := r.inProgram(x, place)
	if r.q.If != "" {
		yes, err := a.holds(scope)
		if err != nil {
			l.undecided(err)
		}
		if err != nil || !yes {
			return Row{}, false, nil
		}
	}
	l.Held++
	row = Row{Position: access.Position, Place: place, Site: log.Contexts[access.Context].Site}
	if scope != nil {
		row.Values = append(values, a.evaluate(scope)...)
	} else {
		row.Values = append(values, a.without()...)
	}
	if r.q.Stack {
		row.Stack = r.stack(x)
	}
	return row, true, nil
}
