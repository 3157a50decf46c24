package ask

import "diagnose/probe"

// executed answers FormExecuted.
func (a *asker) executed() error {
	log, err := a.probed(probe.Question{Lines: []string{a.q.Asked}, Most: a.q.Most})
	if log == nil {
		return err
	}
	for i := range log.Places {
		a.answer.Places = append(a.answer.Places, placeOf(&log.Places[i]))
	}
	for i := range log.Rows {
		row := &log.Rows[i]
		a.answer.Executed = append(a.answer.Executed, Arrival{Instant: instant(row.Moment, row.Position), Thread: row.Moment.Thread, Place: row.Place})
	}
	return err
}
