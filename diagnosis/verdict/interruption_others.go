package verdict

import (
	"slices"

	"diagnose/evidence"
	"diagnose/patterns"
)

// movedWith are the variables, other than those of an order, that the order's handler wrote
// and that other code accesses where the signal is moved over, as far as they were traced.
// Their orders change with the order's, so a cure does not say which of them matters.
func (r *race) movedWith(c *patterns.Candidate) []string {
	list := movedIn(r.failing[c.Run].log, c.Accesses)
	if c.PassingRun >= 0 && c.PassingRun < len(r.passing) {
		list = append(list, movedIn(r.passing[c.PassingRun].log, c.Passing)...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// movedIn is movedWith for one run, of which the order has those accesses. A signal that
// comes between two accesses is moved over what is between them; any other one over what
// comes up to the end.
func movedIn(log *evidence.AccessLog, order []int) []string {
	if len(order) == 0 {
		return nil
	}
	handlers, own := map[uint8]bool{}, map[int32]bool{}
	for _, n := range order {
		a := &log.Accesses[n]
		own[a.Variable] = true
		if a.Handler != 0 {
			handlers[a.Handler] = true
		}
	}
	between := len(order) > 2
	if between { // a handler may interrupt another one's
		handlers = map[uint8]bool{log.Accesses[order[1]].Handler: true}
	}
	delete(handlers, 0)
	first, end := slices.Min(order), len(log.Accesses)
	if between {
		end = slices.Max(order) + 1
	}
	written, accessed := map[int32]bool{}, map[int32]bool{}
	for i := range log.Accesses {
		switch a := &log.Accesses[i]; {
		case own[a.Variable]:
		case handlers[a.Handler]:
			written[a.Variable] = written[a.Variable] || a.Kind != evidence.CodeRead
		case i >= first && i < end:
			accessed[a.Variable] = true
		}
	}
	var list []string
	for v := range written {
		if written[v] && accessed[v] {
			list = append(list, log.Variables[v].Name)
		}
	}
	return list
}
