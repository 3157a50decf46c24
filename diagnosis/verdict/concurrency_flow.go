package verdict

import (
	"maps"
	"slices"

	"diagnose/evidence"
	"diagnose/patterns"
)

// cell is a watched word of a log.
type cell struct {
	variable int32
	offset   uint32
}

func cellOf(a *evidence.Access) cell { return cell{a.Variable, a.Offset} }

// influence says which variables of a failing run's log have a part in the failing check.
type influence struct {
	// read are the variables that the check itself reads; none: that is not known.
	read map[string]bool
	// reach are all whose values reach it: those, what the code that stored them had read, and what the
	// failing thread read in the functions that it was in, which may have led it there.
	reach map[string]bool
}

// flowOf follows the values of the failing check back through a log: from each read that may count to the
// last store before, and from there to all that the storing thread had read by then. What it leaves out
// has no part in the check, as far as memory was watched; not all that it has need have one.
func (r *race) flowOf(run int) *influence {
	log, failing := r.failing[run].log, r.failing[run].rec.Manifest.Outcome.Thread
	f := &influence{read: r.checked(log), reach: map[string]bool{}}
	maps.Copy(f.reach, f.read)
	fails := make([]bool, len(log.Contexts)) // whether a context is in a function that the failing thread was in
	for i := range log.Contexts {
		fails[i] = inFailingFunction(r.Case, &log.Contexts[i].Site)
	}
	wanted := map[cell]bool{}    // words whose last store before counts
	feeding := map[uint32]bool{} // threads whose reads before count
	for i := range slices.Backward(log.Accesses) {
		a := &log.Accesses[i]
		c, name := cellOf(a), log.Variables[a.Variable].Name
		if a.Kind != evidence.CodeRead && wanted[c] {
			feeding[a.Thread] = true
			wanted[c] = a.Kind != evidence.CodeWrite
		}
		if a.Kind == evidence.CodeWrite {
			continue
		}
		if feeding[a.Thread] || a.Thread == failing && (f.read[name] || fails[a.Context]) {
			wanted[c], f.reach[name] = true, true
		}
	}
	return f
}

// checked are the variables that the failing check reads: the one that the bad value was loaded from, or
// those that the line of a failed assertion reads.
func (r *race) checked(log *evidence.AccessLog) map[string]bool {
	names := map[string]bool{}
	if b := r.Blame; b != nil && b.Cell != nil {
		for i := range log.Variables {
			if v := &log.Variables[i]; *b.Cell >= v.Address && *b.Cell < v.Address+evidence.Addr(v.Size) {
				names[v.Name] = true
			}
		}
		return names
	}
	site := r.Case.Failure.Site
	if !gaveUp[r.Case.Failure.Kind] || site == nil || site.Line == 0 || r.Case.Scan == nil {
		return names
	}
	for i := range r.Case.Scan.Suspects {
		s := &r.Case.Scan.Suspects[i]
		if slices.ContainsFunc(s.Lines, func(u evidence.SuspectUse) bool {
			return u.Access != evidence.Write && u.Site.File == site.File && u.Site.Line == site.Line
		}) {
			names[s.Name] = true
		}
	}
	return names
}

// inputs are what a cause may name that is proved, of a candidate: nil if it is not known what the check
// reads. Of a pair one variable is enough. turned: the candidate's variable kept the thread from the check. Then it counts only if the
// check reads it as well: a flag that ends all work keeps every thread from every check.
func (f *influence) inputs(c *patterns.Candidate, turned bool) []string {
	if len(f.read) == 0 {
		return nil
	}
	names, has := f.reach, f.reaches(c)
	if turned {
		names, has = f.read, f.direct(c)
	}
	list := slices.Sorted(maps.Keys(names))
	thing := namesText(c.Variables)
	if has && !slices.Contains(list, thing) {
		list = append(list, thing)
	}
	return list
}

// direct reports whether the check itself reads a candidate's variable.
func (f *influence) direct(c *patterns.Candidate) bool {
	return slices.ContainsFunc(c.Variables, func(v string) bool { return f.read[v] })
}

// reaches reports whether a value of a candidate's variable reaches the check.
func (f *influence) reaches(c *patterns.Candidate) bool {
	return slices.ContainsFunc(c.Variables, func(v string) bool { return f.reach[v] })
}
