package nightly_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"diagnose/corpus"
	"diagnose/corpus/nightly"
	"diagnose/evidence"
	"diagnose/evidence/signature"
	"diagnose/internal/causetest"
	"diagnose/internal/crashtest"
	"diagnose/reports"
)

func TestMain(m *testing.M) { causetest.Main(m) }

const (
	// tableVariable names a file to write the scores of all programs to; without it
	// a few are taken.
	tableVariable = "DIAGNOSE_CLUSTERS"
	// stepVariable takes every so many of the programs; onlyVariable names those to take,
	// with commas between them, whose nights are not killed; eachVariable is how often each
	// of them is to fail.
	stepVariable = "DIAGNOSE_CLUSTERS_STEP"
	onlyVariable = "DIAGNOSE_CLUSTERS_ONLY"
	eachVariable = "DIAGNOSE_CLUSTERS_EACH"
	// keepVariable names a directory in which the corpus stays, to be looked at.
	keepVariable = "DIAGNOSE_CLUSTERS_CORPUS"
	labelKey     = "cause"
)

// programs are where programs with one bug each are: those with known causes, and some
// that differ in nothing but their bugs.
var programs = []string{"../../internal/testdata/cause", "testdata/twins"}

// few are what a short test takes: of one thread, so that no delay has to be kept.
var few = []string{"heap_memcpy", "stock_length", "stock_shelf"}

// failure is one of the corpus, with its true cause and the clusters that it is in by
// each way to group.
type failure struct {
	label, by string // by: the case that it is of
	clusters  map[string]string
	caused    bool
}

// The ways to group. Every program has a name of its own, which makes it easy: so one
// leaves the name out.
const (
	byStack  = "stack"
	byCause  = "cause, or else stack"
	nameless = "the same without the program's name"
)

func TestClusters(t *testing.T) {
	crashtest.TracesAccesses(t)
	path := os.Getenv(tableVariable)
	store := create(t, os.Getenv(keepVariable))
	fill(t, store, chosen(path != ""))
	opts := options(t, store, "bench")
	began := time.Now()
	run, err := nightly.Diagnose(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	list := failures(t, store)
	scores := map[string]score{}
	for _, way := range []string{byStack, byCause, nameless} {
		scores[way] = rate(list, way)
		t.Logf("%s: %v", way, scores[way])
	}
	t.Log(split(t, store, list))
	if only := os.Getenv(onlyVariable); only == "" {
		resumed := killedNights(t, store, opts.Command[0], path != "", took)
		if path != "" {
			write(t, path, "", table(list, scores, run)+"\n"+resumed.String()+"\n")
		}
	}
	for _, way := range []string{byCause, nameless} {
		if s := scores[way]; s.precision() < 1 || s.recall() < 0.95 {
			t.Errorf("%s: %v, want a precision of 1 and a recall of 0.95\n%s", way, s, mistakes(list, way))
		}
	}
}

// killedNights has nights over a corpus killed, and sees that nothing comes of that.
func killedNights(t *testing.T, store *corpus.Corpus, exe string, all bool, took time.Duration) *resumed {
	t.Helper()
	kills := 3
	if all {
		kills = 50
	}
	again := killed(t, store, exe, kills, took)
	t.Log(again)
	if len(again.twice)+len(again.elsewhere) > 0 {
		t.Errorf("diagnosed twice: %q; in another cluster: %q", again.twice, again.elsewhere)
	}
	return again
}

// create makes a corpus in a directory, or if that is empty in one that goes.
func create(t *testing.T, dir string) *corpus.Corpus {
	t.Helper()
	if dir == "" {
		dir = filepath.Join(t.TempDir(), "corpus")
	}
	store, err := corpus.Create(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// options are those of a night with a diagnose that is built for it.
func options(t *testing.T, store *corpus.Corpus, version string) nightly.Options {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "diagnose")
	if out, err := exec.Command("go", "build", "-o", exe, "diagnose/cmd/diagnose").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return nightly.Options{Corpus: store, Version: version, Command: []string{exe}, Since: 24 * time.Hour, Jobs: 2, Time: 5 * time.Minute, Memory: 4 << 30}
}

// choice is which programs fail, and how often.
type choice struct {
	names []string // nil: all, each step-th
	step  int
	each  int // of each case
}

// chosen are all programs, or a few, or those that the environment names.
func chosen(all bool) choice {
	c := choice{names: few, step: 1, each: 1}
	if all {
		c.names, c.each = nil, 2
	}
	if only := os.Getenv(onlyVariable); only != "" {
		c.names = strings.Split(only, ",")
	}
	fmt.Sscan(os.Getenv(stepVariable), &c.step)
	fmt.Sscan(os.Getenv(eachVariable), &c.each)
	return c
}

// fill adds failures of programs at each level and by each of its compilers, each one
// with another environment, and other arguments if the program has several that it fails
// with, and a run that passed.
func fill(t *testing.T, store *corpus.Corpus, choice choice) {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range cases(t) {
		if c.Search != "" || choice.names != nil && !slices.Contains(choice.names, c.Name) {
			continue
		}
		if seen[c.Name] = true; len(seen)%choice.step != 0 {
			continue
		}
		t.Run("record/"+c.String(), func(t *testing.T) {
			for i := range choice.each {
				t.Setenv("CLUSTERS_PADDING", strings.Repeat("x", i*1000)) // which moves the stack
				for _, r := range c.AllFailing(t, i+1) {
					add(t, store, r.Dir, c)
				}
			}
			if c.Pattern != "" || c.Kind == evidence.CauseAtomicity {
				add(t, store, c.Passing(t, 1)[0].Dir, c)
			}
		})
	}
}

// cases are all programs at all levels.
func cases(t *testing.T) []*causetest.Case {
	t.Helper()
	t.Setenv("DIAGNOSE_MATRIX", "full") // each at each level
	var list []*causetest.Case
	for _, dir := range programs {
		list = append(list, causetest.Cases(t, dir)...)
	}
	return list
}

func add(t *testing.T, store *corpus.Corpus, dir string, c *causetest.Case) {
	t.Helper()
	if _, err := store.Add(t.Context(), dir, corpus.AddOptions{Labels: map[string]string{labelKey: c.Name, "case": c.String()}}); err != nil {
		t.Fatal(err)
	}
}

func failures(t *testing.T, store *corpus.Corpus) []failure {
	t.Helper()
	entries, err := store.List(t.Context(), corpus.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	var list []failure
	for _, e := range entries {
		if e.Passed {
			continue
		}
		d := e.Diagnosis
		if d == nil {
			t.Fatalf("%s was not diagnosed", e.ID)
		}
		f := failure{label: e.Labels[labelKey], by: e.Labels["case"], caused: d.Cause != "",
			clusters: map[string]string{byStack: d.Stack, byCause: d.Cluster(), nameless: e.ID}}
		if d.Diagnosed {
			f.clusters[nameless] = withoutName(t, store, e.ID)
		}
		list = append(list, f)
	}
	return list
}

func withoutName(t *testing.T, store *corpus.Corpus, id string) string {
	t.Helper()
	text, err := store.Report(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var doc reports.Document
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(doc.Case.Program.Exe)
	s := signature.Of(doc.Case)
	lines := s.CauseLines
	if len(lines) == 0 {
		lines = s.StackLines
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), name, "")
}
