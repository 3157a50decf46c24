package page

import (
	"cmp"
	"slices"
	"strconv"

	"diagnose/corpus"
)

// test is a test by its label, with its runs in the corpus.
type test struct {
	Name, Href string
	// Failed and Passed count its runs.
	Failed, Passed int
	// Builds are its commits or, without that label, its versions, in the order of their first
	// runs; By says which.
	Builds   []build
	By       string
	Interval interval
	// Flaky is the newest build of which runs passed and failed; nil: there is none, so it is not
	// known to be flaky.
	Flaky *build
	// Unplaced counts runs of no known build.
	Unplaced int
	entries  []*corpus.Entry
}

// Rate is the part of its runs that failed.
func (t *test) Rate() string { return rate(t.Failed, t.Failed+t.Passed) }

// Runs counts its runs.
func (t *test) Runs() int { return t.Failed + t.Passed }

// tests are the tests of a corpus that have failed, the most frequent failures first.
func (st *state) tests() []*test {
	byName := map[string]*test{}
	for i := range st.entries {
		e := &st.entries[i]
		name := e.Labels[testLabel]
		if name == "" {
			continue
		}
		t := byName[name]
		if t == nil {
			t = &test{Name: name, Href: selection{Name: name}.address(testPath)}
			byName[name] = t
		}
		t.entries = append(t.entries, e)
	}
	var list []*test
	for _, t := range byName {
		if t.sum(); t.Failed > 0 {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *test) int { return cmp.Or(b.Failed-a.Failed, cmp.Compare(a.Name, b.Name)) })
	return list
}

// sum counts the runs.
func (t *test) sum() {
	buildOf := labelled(commitLabel)
	t.By = commitLabel
	if !slices.ContainsFunc(t.entries, func(e *corpus.Entry) bool { return buildOf(e) != "" }) {
		buildOf, t.By = versionOf, versionLabel
	}
	var all []runs
	for _, r := range jobsOf(t.entries, buildOf) {
		t.Failed += r.failed
		t.Passed += r.passed
		if r.build != "" {
			all = append(all, r)
		} else {
			t.Unplaced += r.failed + r.passed
		}
	}
	if !slices.ContainsFunc(all, runs.anyFailed) {
		t.Builds = builds(all)
		return
	}
	t.Builds, t.Interval = bisect(all)
	for i := range t.Builds {
		if b := &t.Builds[i]; b.Failed > 0 && b.Passed > 0 {
			t.Flaky = b
		}
	}
}

// mostJobRuns bounds the runs that a label may stand for.
const mostJobRuns = 1_000_000

// jobsOf are the runs that entries stand for. An entry is one run, unless it has the labels runs and
// failed: then it is of a job that made so many runs, of which so many failed, and kept only some.
// Entries of one job and one build, by the label job, stand for the same runs.
func jobsOf(entries []*corpus.Entry, buildOf func(*corpus.Entry) string) []runs {
	type job struct{ name, build string }
	var list []runs
	seen := map[job]bool{}
	for _, e := range entries {
		made, err1 := strconv.Atoi(e.Labels[runsLabel])
		failed, err2 := strconv.Atoi(e.Labels[failedLabel])
		if err1 != nil || err2 != nil || made < 1 || made > mostJobRuns || failed < 0 || failed > made {
			list = append(list, single(buildOf(e), e.FailedAt, !e.Passed))
			continue
		}
		j := job{cmp.Or(e.Labels[jobLabel], e.ID), buildOf(e)}
		if !seen[j] {
			seen[j] = true
			list = append(list, runs{j.build, e.FailedAt, failed, made - failed})
		}
	}
	return list
}

const testPath = "/test"

// mostTests bounds the tests of one page.
const mostTests = 200

func (s *Server) testsPage(q *request) error {
	st, err := q.state()
	if err != nil {
		return err
	}
	list := st.tests()
	data := struct {
		frame
		Tests []*test
		More  int
	}{frame: s.frame(q, "Tests", "/tests"), Tests: list}
	if len(list) > mostTests {
		data.Tests, data.More = list[:mostTests], len(list)-mostTests
	}
	return s.show(q, "tests", data)
}

func (s *Server) testPage(q *request) error {
	st, err := q.state()
	if err != nil {
		return err
	}
	sel, err := parseSelection(q.URL.Query())
	if err != nil {
		return badRequest(err.Error())
	}
	tests := st.tests()
	i := slices.IndexFunc(tests, func(t *test) bool { return t.Name == sel.Name })
	if i < 0 {
		return notFound("no failure in the corpus has this test as its label")
	}
	t := tests[i]
	failures := slices.DeleteFunc(slices.Clone(t.entries), func(e *corpus.Entry) bool { return e.Passed })
	data := struct {
		frame
		*test
		Rows   []row
		Pages  pages
		Causes []card
	}{frame: s.frame(q, "Test "+t.Name, "/tests"), test: t}
	shown, p := paged(failures, testPath, sel)
	data.Rows, data.Pages = s.rows(shown), p
	counts := map[string]int{}
	for _, e := range failures {
		counts[clusterOf(e)]++
	}
	for i := range st.causes {
		if c := &st.causes[i]; counts[c.Digest] > 0 && len(data.Causes) < mostCards {
			data.Causes = append(data.Causes, c.card(s.keep.now(), counts[c.Digest]))
		}
	}
	return s.show(q, "test", data)
}
