package verdict

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/patterns"
)

// unfinished tells what a writer had still to do in the failing run, of an order that
// passing runs have as well: there it had also written, before the reader came, another
// variable that the failing thread looks at. Empty: nothing of that kind was seen.
//
// The order alone is not what the failure needs then. A pair of the two variables cannot
// be found, as the process ended before the second write.
func (r *race) unfinished(c *patterns.Candidate) string {
	if len(c.Accesses) != 2 || c.PassingRuns == 0 || c.Never {
		return ""
	}
	failing := r.failing[c.Run].log
	for i := range r.passing {
		log := r.passing[i].log
		if a := completion(failing, c.Accesses[0], c.Accesses[1], log); a != nil {
			return fmt.Sprintf("where passing runs have that order, %s has also written %s before",
				siteText(&log.Contexts[a.Context].Site), log.Variables[a.Variable].Name)
		}
	}
	return ""
}

// completion is the write by which a passing run is further than the failing one in the
// same order of a write and a read; nil: there is none.
func completion(failing *evidence.AccessLog, write, read int, passing *evidence.AccessLog) *evidence.Access {
	w, seen := &failing.Accesses[write], &failing.Accesses[read]
	if w.Kind.Kind() == evidence.Read || seen.Kind.Kind() != evidence.Read || w.Thread == seen.Thread {
		return nil
	}
	key := func(log *evidence.AccessLog, a *evidence.Access) string { return log.Contexts[a.Context].Key }
	name := func(log *evidence.AccessLog, a *evidence.Access) string { return log.Variables[a.Variable].Name }
	looked, came := map[string]bool{}, map[string]bool{}
	for i := range failing.Accesses {
		switch a := &failing.Accesses[i]; {
		case a.Thread == seen.Thread && a.Kind.Kind() != evidence.Write:
			looked[name(failing, a)] = true
		case a.Thread == w.Thread:
			came[key(failing, a)] = true
		}
	}
	same := func(a, of *evidence.Access) bool {
		return key(passing, a) == key(failing, of) && name(passing, a) == name(failing, of)
	}
	var begun, further *evidence.Access
	for i := range passing.Accesses {
		a := &passing.Accesses[i]
		switch {
		case begun == nil && same(a, seen):
			return nil // the other order
		case same(a, w):
			begun = a
		case begun == nil:
		case a.Thread == begun.Thread:
			if n := name(passing, a); further == nil && a.Kind.Kind() != evidence.Read &&
				n != name(failing, w) && looked[n] && !came[key(passing, a)] {
				further = a
			}
		case same(a, seen):
			return further
		}
	}
	return nil
}
