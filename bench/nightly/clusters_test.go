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
	"diagnose/evidence/signature"
	"diagnose/internal/causetest"
	"diagnose/nightly"
	"diagnose/reports"
)

func TestMain(m *testing.M) { causetest.Main(m) }

const (
	// tableVariable names a file to write the scores of all programs to; without it
	// a few are taken.
	tableVariable = "DIAGNOSE_CLUSTERS"
	// stepVariable takes every so many of the programs.
	stepVariable = "DIAGNOSE_CLUSTERS_STEP"
	labelKey     = "cause"
)

// few are what a short test takes: of one thread, so that no delay has to be kept.
var few = []string{"heap_memcpy", "overwritten_global"}

// failure is one of the corpus, with its true cause and the clusters that it is in by
// each way to group.
type failure struct {
	label, by string // by: the case that it is of
	clusters  map[string]string
	caused    bool
	reason    string
}

// The ways to group. Every program has a name of its own, which makes it easy: so one
// leaves the name out.
const (
	byStack  = "stack"
	byCause  = "cause, or else stack"
	nameless = "the same without the program's name"
)

func TestClusters(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "diagnose")
	if out, err := exec.Command("go", "build", "-o", exe, "diagnose/cmd/diagnose").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	store, err := corpus.Create(t.Context(), filepath.Join(t.TempDir(), "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	path := os.Getenv(tableVariable)
	fill(t, store, path != "")
	run, err := nightly.Diagnose(t.Context(), nightly.Options{Corpus: store, Version: "bench", Command: []string{exe}, Since: 24 * time.Hour,
		Jobs: 2, Time: 5 * time.Minute, Memory: 4 << 30})
	if err != nil {
		t.Fatal(err)
	}
	list := failures(t, store)
	scores := map[string]score{}
	for _, way := range []string{byStack, byCause, nameless} {
		scores[way] = rate(list, way)
		t.Logf("%s: %v", way, scores[way])
	}
	if s := scores[byCause]; s.precision() < 1 || s.recall() < 0.95 {
		t.Errorf("%v, want a precision of 1 and a recall of 0.95\n%s", s, mistakes(list, byCause))
	}
	if path != "" {
		if err := os.WriteFile(path, []byte(table(list, scores, run)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// fill adds two failures of each program at each level, and a run that passed; of a few
// programs one.
func fill(t *testing.T, store *corpus.Corpus, all bool) {
	t.Helper()
	t.Setenv("DIAGNOSE_MATRIX", "full") // each at each level
	step, each, seen := 1, 1, map[string]bool{}
	if all {
		each = 2
	}
	fmt.Sscan(os.Getenv(stepVariable), &step)
	for _, c := range causetest.Cases(t, "../../testdata/cause") {
		if c.Search != "" || !all && !slices.Contains(few, c.Name) || strings.HasSuffix(c.String(), "-clang") {
			continue
		}
		if seen[c.Name] = true; len(seen)%step != 0 {
			continue
		}
		t.Run("record/"+c.String(), func(t *testing.T) {
			for _, r := range c.AllFailing(t, each) {
				add(t, store, r.Dir, c)
			}
			if c.Pattern != "" {
				add(t, store, c.Passing(t, 1)[0].Dir, c)
			}
		})
	}
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
		f := failure{label: e.Labels[labelKey], by: e.Labels["case"], caused: d.Cause != "", reason: d.Reason,
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

// score counts pairs: true positives are of one cause and in one cluster.
type score struct{ both, cluster, cause int }

func rate(list []failure, way string) score {
	var s score
	for i := range list {
		for j := range i {
			same, one := list[i].label == list[j].label, list[i].clusters[way] == list[j].clusters[way]
			if same {
				s.cause++
			}
			if one {
				s.cluster++
			}
			if same && one {
				s.both++
			}
		}
	}
	return s
}

func (s score) precision() float64 { return float64(s.both) / float64(max(1, s.cluster)) }
func (s score) recall() float64    { return float64(s.both) / float64(max(1, s.cause)) }

func (s score) String() string {
	return fmt.Sprintf("precision %.3f, recall %.3f (%d pairs of one cause, %d in one cluster, %d both)", s.precision(), s.recall(), s.cause, s.cluster, s.both)
}

// mistakes are the causes that are in several clusters, and the clusters with several
// causes.
func mistakes(list []failure, way string) string {
	clusters, causes := map[string][]string{}, map[string][]string{}
	for _, f := range list {
		clusters[f.label] = append(clusters[f.label], f.clusters[way])
		causes[f.clusters[way]] = append(causes[f.clusters[way]], f.label)
	}
	var out []string
	for label, names := range clusters {
		slices.Sort(names)
		if names = slices.Compact(names); len(names) > 1 {
			out = append(out, fmt.Sprintf("%s is in %d clusters", label, len(names)))
		}
	}
	for _, labels := range causes {
		slices.Sort(labels)
		if labels = slices.Compact(labels); len(labels) > 1 {
			out = append(out, "one cluster has "+strings.Join(labels, ", "))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func table(list []failure, scores map[string]score, run *nightly.Run) string {
	var b strings.Builder
	caused, causes := 0, map[string]bool{}
	for _, f := range list {
		causes[f.label] = true
		if f.caused {
			caused++
		}
	}
	b.WriteString("# Clusters against true causes\n\nWritten by `make clusters`")
	if step := os.Getenv(stepVariable); step != "" {
		b.WriteString(" with `" + stepVariable + "=" + step + "`")
	}
	b.WriteString("; [corpus.md](corpus.md) says what signatures are.\n\n")
	fmt.Fprintf(&b, "%d failures of %d causes, from the programs of `testdata/cause`, compiled with -O0 and -O2 and recorded twice each. "+
		"A night diagnosed %d of them, with a cause that replays showed %d; %.0f for each hour of a processor.\n\n", len(list), len(causes), run.Diagnosed, caused, run.PerCoreHour)
	b.WriteString("| Grouped by | Precision | Recall |\n| --- | --- | --- |\n")
	for _, way := range []string{byStack, byCause, nameless} {
		fmt.Fprintf(&b, "| %s | %.3f | %.3f |\n", way, scores[way].precision(), scores[way].recall())
	}
	b.WriteString("\nOf pairs of failures: precision is how many in one cluster have one cause, recall how many of one cause are in one cluster.\n")
	if wrong := mistakes(list, byCause); wrong != "" {
		b.WriteString("\nWhat is wrong by cause:\n\n")
		for line := range strings.Lines(wrong) {
			b.WriteString("- " + line)
		}
		b.WriteString("\n")
	}
	if wrong := mistakes(list, nameless); wrong != "" {
		b.WriteString("\nWithout the program's name:\n\n")
		for line := range strings.Lines(wrong) {
			b.WriteString("- " + line)
		}
		b.WriteString("\n")
	}
	return b.String()
}
