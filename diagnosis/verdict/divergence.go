package verdict

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"diagnose/delta"
	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
	"diagnose/internal/wording"
	"diagnose/replay/record"
)

// mostDivergences is how many branches are told.
const mostDivergences = 6

// errNoBranches says that nothing was compared.
var errNoBranches = errors.New("no branch was compared with passing runs: no trace of the end of the run has those on which it depends")

// divergenceSearch finds where the failing run went another way than those that pass.
type divergenceSearch struct {
	in         *Input
	out        *evidence.Diagnosis
	progress   *progress
	exact      *exact
	conclusion *conclusion
}

// find compares the branches on which the end of the failing run depends, where it gave up by itself, with those of passing runs.
// The failing run's dynamic slice says which branches these are, so a difference that does not flow into the failure is not told.
// A proved cause needs no such difference.
func (ds *divergenceSearch) find() error {
	if len(ds.in.Passing) == 0 || !endedItself(ds.in.Case) || proved(ds.out.Causes) {
		return nil
	}
	if err := ds.exact.record(ds.progress.ctx, ds.in.Image, ds.progress.say); err != nil {
		return errNoBranches
	}
	r := ds.exact.reasons()
	if r == nil || len(r.Conditions) == 0 {
		return errNoBranches
	}
	list := slices.Clone(r.Conditions)
	slices.SortStableFunc(list, func(a, b provenance.Condition) int { return a.Step - b.Step })
	ways := make([]delta.Way, len(list))
	first := delta.NewBranches()
	for i := range list {
		c := &list[i]
		ways[i] = delta.Way{Branch: delta.Branch{PC: c.PC, Caller: c.Caller}, Next: c.Next}
		first.Add(ways[i], nil)
	}
	points := pointsOf(list, ways, ds.exact.program.Decode)
	failing, err := ds.branchesOfRuns("failing", ds.in.Failing[1:], points)
	if err != nil {
		return err
	}
	passing, err := ds.branchesOfRuns("passing", ds.in.Passing, points)
	if err != nil {
		return err
	}
	for _, s := range delta.Separate(ways, append([]*delta.Branches{first}, failing...), passing) {
		if d := ds.divergence(&list[s.Index], &s); d != nil && len(ds.out.Divergences) < mostDivergences && !ds.conclusion.diverged(d) {
			ds.out.Divergences = append(ds.out.Divergences, *d)
		}
	}
	return nil
}

// diverged reports whether another branch of the same line is told.
func (k *conclusion) diverged(d *evidence.Divergence) bool {
	same := func(a, b *evidence.Site) bool {
		return a == nil && b == nil || a != nil && b != nil && a.File == b.File && a.Line == b.Line
	}
	return slices.ContainsFunc(k.out.Divergences, func(x evidence.Divergence) bool { return same(x.Site, d.Site) && same(x.Caller, d.Caller) })
}

func (ds *divergenceSearch) branchesOfRuns(kind string, runs []*record.Recording, points branchPoints) (list []*delta.Branches, err error) {
	for i, rec := range runs[:min(len(runs), mostBranchRuns)] {
		ds.progress.say("branches of %s run %d of %d", kind, i+1, len(runs))
		b, err := ds.branchesOf(rec, points)
		if err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return list, nil
}

// divergence describes a branch; nil if it has no line.
func (ds *divergenceSearch) divergence(c *provenance.Condition, s *delta.Separation) *evidence.Divergence {
	d := &evidence.Divergence{Site: ds.exact.site(c.PC), FailingRuns: s.Failing, FailingOf: s.FailingOf, PassingRuns: s.Passing, PassingOf: s.PassingOf,
		Reached: s.Reached, Score: s.Score(), Tested: valueTexts(c.Tested), Proof: evidence.Replayed}
	if d.Site == nil {
		return nil
	}
	if s.Way.Caller != 0 {
		d.Caller = ds.exact.site(s.Way.Caller - 1) // within the call before the address to which it returns
	}
	for _, values := range s.Values {
		d.Passing = append(d.Passing, valueTexts(values))
	}
	for _, from := range c.Origins(ds.exact.trace, ds.exact.program) {
		if from.Of == nil {
			d.Origin = append(d.Origin, ds.exact.story(from.Way)...)
		}
	}
	d.Text = divergenceText(d)
	return d
}

func valueTexts(values []uint64) (texts []string) {
	for _, v := range values {
		texts = append(texts, valueText(v))
	}
	return texts
}

func divergenceText(d *evidence.Divergence) string {
	text := "the branch at " + siteText(d.Site)
	if d.Caller != nil {
		text += ", in the call from " + siteText(d.Caller) + ","
	}
	text += fmt.Sprintf(" went another way than in %d of %s", d.Reached-d.PassingRuns, wording.Count(d.PassingOf, "passing run"))
	if d.FailingOf > 1 {
		text += fmt.Sprintf(", as in %d of %d failing ones", d.FailingRuns, d.FailingOf)
	}
	if len(d.Tested) > 0 {
		text += ": it found " + strings.Join(d.Tested, " and ")
	}
	var others []string
	for _, list := range d.Passing {
		others = append(others, strings.Join(list, " and "))
	}
	if len(others) > 0 {
		text += ", and passing runs " + strings.Join(others, " or ")
	}
	return text
}

// lead tells the earliest branch that no passing run left by the way of the failing ones, where no cause is known.
func (ds *divergenceSearch) lead() {
	if len(ds.out.Divergences) == 0 || slices.ContainsFunc(ds.out.Causes, func(c evidence.Cause) bool { return c.Open == "" }) {
		return
	}
	d := &ds.out.Divergences[0]
	if d.PassingRuns > 0 || d.FailingRuns < d.FailingOf {
		return
	}
	story := append(slices.Clone(d.Origin), ds.exact.step(d.Text, d.Site))
	lead := evidence.Cause{Kind: evidence.CauseBadValue, Basis: evidence.BasisBranch, Site: d.Site, Story: story, Proof: evidence.Replayed, Open: evidence.OpenOtherWay, Summary: d.Text}
	if slices.ContainsFunc(ds.out.Causes, func(c evidence.Cause) bool { return c.Open == evidence.OpenUntested }) {
		ds.out.Causes = append(ds.out.Causes, lead) // another order of accesses may have made the branch go otherwise
		return
	}
	ds.out.Causes = append([]evidence.Cause{lead}, ds.out.Causes...)
}
