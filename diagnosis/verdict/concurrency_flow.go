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
		fails[i] = r.fails(&log.Contexts[i].Site)
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
// reads. Of a pair one variable is enough.
func (f *influence) inputs(c *patterns.Candidate) []string {
	if len(f.read) == 0 {
		return nil
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(f.reach)) {
		if f.reach[name] {
			list = append(list, name)
		}
	}
	thing := namesText(c.Variables)
	if f.reaches(c) && !slices.Contains(list, thing) {
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

// mostNearer bounds how many further candidates are tried when one was found.
const mostNearer = 3

// nearest is the candidate whose variable the check itself reads, where one that helps is of another
// variable: to keep two threads apart helps whatever they do then, and so a bystander's order seems to
// be the cause as well. Where the found one's value leads to the check, through other variables, one that
// says less is its consequence. Without such a candidate it is the one that was found.
func (r *race) nearest(found *tested, tried map[*patterns.Candidate]*tested) (*tested, error) {
	f := r.flowOf(found.candidate.Run)
	if len(f.read) == 0 || f.direct(found.candidate) {
		return found, nil
	}
	left := mostNearer
	var nearer *tested
	for i := range r.found.Candidates {
		c := &r.found.Candidates[i]
		if c.Run != found.candidate.Run || !c.Suspicious() || !f.direct(c) {
			continue
		}
		t := tried[c]
		if t == nil {
			if left--; left < 0 || r.stopsBefore("experiments") {
				break
			}
			var err error
			if t, err = r.test(c); err != nil {
				return nil, err
			}
			tried[c] = t
		}
		replaces := t.cured && !r.contradicted(t) && (!f.reaches(found.candidate) || t.says() >= found.says())
		if replaces && (nearer == nil || t.says() > nearer.says()) {
			nearer = t
		}
	}
	if nearer != nil {
		return nearer, nil
	}
	return found, nil
}

// rivals are interleavings that explain the failure as well as the one that was found, by accesses of
// other variables in other functions.
func (r *race) rivals(found *tested, tried map[*patterns.Candidate]*tested) (list []*tested, err error) {
	if found.says() != saysMost {
		return nil, nil
	}
	left := mostNearer
	for i := range r.found.Candidates {
		c := &r.found.Candidates[i]
		like := c.Suspicious() && len(c.Accesses) > 2 && !c.Apart && !c.Late && c.Run == found.candidate.Run && c.Score == found.candidate.Score
		if !like || c.Pattern == evidence.PatternPair || !r.unrelated(c, found.candidate) {
			continue
		}
		t := tried[c]
		if t == nil {
			if left--; left < 0 || r.stopsBefore("experiments") {
				break
			}
			if t, err = r.test(c); err != nil {
				return nil, err
			}
			tried[c] = t
		}
		f := r.flowOf(c.Run)
		if t.says() == saysMost && !r.contradicted(t) && (len(f.read) == 0 || f.reaches(c)) {
			list = append(list, t)
		}
	}
	return list, nil
}

// unrelated reports whether two candidates of one run have no variable and no function in common.
func (r *race) unrelated(a, b *patterns.Candidate) bool {
	log := r.failing[a.Run].log
	function := func(i int) string { return log.Contexts[log.Accesses[i].Context].Site.Function }
	return !slices.ContainsFunc(a.Variables, func(v string) bool { return slices.Contains(b.Variables, v) }) &&
		!slices.ContainsFunc(a.Accesses, func(i int) bool {
			return slices.ContainsFunc(b.Accesses, func(j int) bool { return function(i) == function(j) })
		})
}
