package verdict

import (
	"slices"

	"diagnose/evidence"
	"diagnose/patterns"
)

// comparison compares a candidate that helps with the others of its run.
type comparison struct {
	*race
	found *tested
	tried map[*patterns.Candidate]*tested
	// flow says what has a part in the failing check of the run.
	flow *influence
}

// compare reports what is found, after a look at what is nearer to the failure, and at what explains it as
// well. Of two unrelated explanations neither is proved.
func (r *race) compare(found *tested, tried map[*patterns.Candidate]*tested) ([]evidence.Cause, error) {
	x := &comparison{r, found, tried, r.flowOf(found.candidate.Run)}
	if err := x.nearest(); err != nil {
		return nil, err
	}
	others, err := x.rivals()
	if err != nil {
		return nil, err
	}
	for _, t := range others {
		t.rivals = []string{namesText(x.found.candidate.Variables)}
		x.found.rivals = append(x.found.rivals, namesText(t.candidate.Variables))
	}
	return r.reports(append([]*tested{x.found}, others...)...)
}

// mostNearer bounds how many further candidates are tried when one was found.
const mostNearer = 3

// other tries a candidate if that was not done yet, and takes it from left; nil: no more are tried.
func (x *comparison) other(c *patterns.Candidate, left *int) (*tested, error) {
	if t := x.tried[c]; t != nil {
		return t, nil
	}
	if *left--; *left < 0 || x.progress.stopsBefore("experiments") {
		return nil, nil
	}
	t, err := x.test(c)
	if err == nil {
		x.tried[c] = t
	}
	return t, err
}

// nearest puts the candidate whose variable the check itself reads in the place of one that helps and is of
// another variable: to keep two threads apart helps whatever they do then, and so a bystander's order seems to
// be the cause as well. Where the found one's value leads to the check, through other variables, one that
// says less is its consequence. Without such a candidate it remains the one that was found.
func (x *comparison) nearest() error {
	f, found := x.flow, x.found
	if len(f.read) == 0 || f.direct(found.candidate) {
		return nil
	}
	left := mostNearer
	var nearer *tested
	for i := range x.race.found.Candidates {
		c := &x.race.found.Candidates[i]
		if c.Run != found.candidate.Run || !c.Suspicious() || !f.direct(c) {
			continue
		}
		t, err := x.other(c, &left)
		if err != nil {
			return err
		}
		if t == nil {
			break
		}
		replaces := t.cured && !x.contradicted(t) && (!f.reaches(found.candidate) || t.says() >= found.says())
		if replaces && (nearer == nil || t.says() > nearer.says()) {
			nearer = t
		}
	}
	if nearer != nil {
		x.found = nearer
	}
	return nil
}

// rivals are interleavings that explain the failure as well as the one that was found, by accesses of
// other variables in other functions.
func (x *comparison) rivals() (list []*tested, err error) {
	if x.found.says() != saysMost {
		return nil, nil
	}
	left := mostNearer
	for i := range x.race.found.Candidates {
		c := &x.race.found.Candidates[i]
		like := c.Suspicious() && len(c.Accesses) > 2 && !c.Apart && !c.Late && c.Run == x.found.candidate.Run && c.Score == x.found.candidate.Score
		if !like || c.Pattern == evidence.PatternPair || !x.unrelated(c, x.found.candidate) {
			continue
		}
		t, err := x.other(c, &left)
		if err != nil {
			return nil, err
		}
		if t == nil {
			break
		}
		if t.says() == saysMost && !x.contradicted(t) && (len(x.flow.read) == 0 || x.flow.reaches(c)) {
			list = append(list, t)
		}
	}
	return list, nil
}

// unrelated reports whether two candidates of one run have no variable and no function in common.
func (x *comparison) unrelated(a, b *patterns.Candidate) bool {
	log := x.failing[a.Run].log
	function := func(i int) string { return log.Contexts[log.Accesses[i].Context].Site.Function }
	return !slices.ContainsFunc(a.Variables, func(v string) bool { return slices.Contains(b.Variables, v) }) &&
		!slices.ContainsFunc(a.Accesses, func(i int) bool {
			return slices.ContainsFunc(b.Accesses, func(j int) bool { return function(i) == function(j) })
		})
}
