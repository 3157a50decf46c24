package explore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"diagnose/image"
	"diagnose/internal/recordtest"
	"diagnose/replay"
	"diagnose/replay/explore"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

func TestMain(m *testing.M) { recordtest.Main(m) }

// program is a built program of testdata/schedule.
type program struct {
	*recordtest.Program
	exe string
}

func build(t *testing.T, name string) *program {
	t.Helper()
	p, err := recordtest.Read("../../internal/testdata/schedule/" + name + ".c")
	if err != nil {
		t.Fatal(err)
	}
	return &program{p, p.Build(t)}
}

// fail records until the program ends as expected, and returns the number of runs; nil: it did
// not within the limit.
func (p *program) fail(t *testing.T, most int) (*record.Recording, int) {
	t.Helper()
	for run := 1; run <= most; run++ {
		r := recordtest.RecordProgram(t, p.exe, p.Args, p.Stdin, "")
		if !strings.HasSuffix(r.Dir, "-"+p.Ends) {
			os.RemoveAll(r.Dir)
			continue
		}
		rec, err := record.Open(r.Dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { rec.Close() })
		return rec, run
	}
	return nil, most
}

// mostRuns is how often a program is recorded until it fails: on a machine under load, threads
// seldom run at the same time.
const mostRuns = 80

// mostSearched is how many recordings of a race are searched, each for searchBudget, until one
// is found. For a few the search finds no schedule (docs/schedules.md, limits), and a busy
// machine is slower.
const (
	mostSearched = 6
	searchBudget = 45 * time.Second
)

// eachFailing passes recordings of a program's failure to the test until one is suitable; the
// others are logged. If too many are unsuitable, the test fails.
func eachFailing(t *testing.T, name string, use func(*record.Recording) (done bool)) {
	t.Helper()
	p := build(t, name)
	for range mostSearched {
		rec, _ := p.fail(t, mostRuns)
		if rec == nil {
			t.Skipf("%s did not fail in %d runs", name, mostRuns)
		}
		if use(rec) {
			return
		}
	}
	t.Errorf("none of %d recordings of %s was found", mostSearched, name)
}

// A search finds preemptions that reach the recorded failure, and every replay uses them.
func TestSearch(t *testing.T) {
	for name, least := range map[string]int{"control": 1, "apache": 2} {
		t.Run(name, func(t *testing.T) {
			eachFailing(t, name, func(rec *record.Recording) bool {
				r, reached := search(t, rec)
				if !reached || r.Level == explore.LevelPlain {
					return false
				}
				found(t, rec, r, least)
				return true
			})
		})
	}
}

// A race is found in a window of which stepping covers a small part: by the words that change
// in it.
func TestSearchLongWindow(t *testing.T) {
	eachFailing(t, "long", func(rec *record.Recording) bool {
		if r, err := replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{Preemptions: []eventlog.Preemption{}}}); err == nil {
			t.Logf("a replay needs no preemption: %+v", r)
			return false
		}
		r, reached := search(t, rec)
		if !reached {
			return false
		}
		if r.Level != explore.LevelFine {
			t.Errorf("it is found at the level %s", r.Level)
		}
		found(t, rec, r, 1)
		return true
	})
}

// A search that is cut short stores its state. No replay uses it, and another search continues
// from it.
func TestSearchGoesOn(t *testing.T) {
	eachFailing(t, "apache", func(rec *record.Recording) bool {
		first := cutShort(t, rec)
		if first == nil {
			return false
		}
		if f, err := rec.Found(); f != nil || err != nil {
			t.Errorf("a replay would use %+v, %v", f, err)
		}
		if f, err := rec.Searched(); err != nil || f == nil || !f.Partial || !slices.Equal(f.Preemptions, first.Preemptions) {
			t.Fatalf("written: %+v, %v", f, err)
		}
		r, err := explore.Search(t.Context(), rec, explore.Options{Resume: true, Budget: searchBudget})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Reproduced {
			t.Logf("%d and %d attempts came to event %d of %d: %v; not tried: %s", first.Attempts, r.Attempts, r.Events, r.Total, r.Err, r.Unexplored)
			return false
		}
		if f, err := rec.Found(); err != nil || f == nil || f.Attempts != first.Attempts+r.Attempts {
			t.Errorf("written: %+v, %v, after %d and %d attempts", f, err, first.Attempts, r.Attempts)
		}
		return true
	})
}

// A plan that an earlier search tried in vain is not tried again.
func TestSearchRemembers(t *testing.T) {
	const attempts = 6 // two without preemptions, and a few of a first window
	eachFailing(t, "apache", func(rec *record.Recording) bool {
		tried := map[string]int{}
		options := explore.Options{Attempts: attempts, Budget: searchBudget, Tried: func(x explore.Tried) {
			if x.Preemptions != nil {
				tried[fmt.Sprint(x.Timing, x.Preemptions)]++
			}
		}}
		first, err := explore.Search(t.Context(), rec, options)
		if err != nil {
			t.Fatal(err)
		}
		if len(first.Preemptions) > 0 || first.Reproduced {
			return false // the next search continues from there, and has nothing to leave out
		}
		options.Resume = true
		second, err := explore.Search(t.Context(), rec, options)
		if err != nil {
			t.Fatal(err)
		}
		for plan, n := range tried {
			if n > 1 {
				t.Errorf("%s was tried %d times", plan, n)
			}
		}
		if second.Remembered < attempts-2 || second.Attempts != attempts || len(tried) != 2*(attempts-2) {
			t.Errorf("%d left out, %d attempts, %d plans", second.Remembered, second.Attempts, len(tried))
		}
		if f, err := rec.Searched(); err != nil || f == nil || len(f.Tried) < len(tried) || f.Attempts != first.Attempts+second.Attempts {
			t.Errorf("written: %+v, %v", f, err)
		}
		return true
	})
}

// cutShort returns the result of a search that made progress and did not reach the end; nil: no
// tried number of attempts gives one.
func cutShort(t *testing.T, rec *record.Recording) *explore.Result {
	t.Helper()
	for attempts := 10; attempts < 30; attempts += 2 {
		r, err := explore.Search(t.Context(), rec, explore.Options{Attempts: attempts, Budget: searchBudget})
		if err != nil {
			t.Fatal(err)
		}
		if r.Reproduced {
			break
		}
		if len(r.Preemptions) > 0 {
			return r
		}
	}
	t.Log("no way to this recording's end is in two parts")
	return nil
}

// search searches, and reports whether it reached the recorded end.
func search(t *testing.T, rec *record.Recording) (*explore.Result, bool) {
	t.Helper()
	told := 0
	r, err := explore.Search(t.Context(), rec, explore.Options{Budget: searchBudget, Progress: func(explore.Progress) { told++ }})
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, n := range r.ByLevel {
		tried += n
	}
	if tried != r.Attempts || told == 0 || told > r.Attempts {
		t.Errorf("%d attempts, by level %v, told of %d", r.Attempts, r.ByLevel, told)
	}
	if !r.Reproduced {
		t.Logf("%d attempts came to event %d of %d: %v; not tried: %s", r.Attempts, r.Events, r.Total, r.Err, r.Unexplored)
	}
	return r, r.Reproduced
}

// found checks that the end is reached because of the schedule: no replay without it reaches
// the end, and every replay with it does.
func found(t *testing.T, rec *record.Recording, r *explore.Result, least int) {
	t.Helper()
	if len(r.Preemptions) < least || r.Attempts < 3 {
		t.Errorf("%d preemptions after %d attempts", len(r.Preemptions), r.Attempts)
	}
	written, err := rec.Found()
	if err != nil || written == nil || !slices.Equal(written.Preemptions, r.Preemptions) || written.Attempts != r.Attempts || written.Level != string(r.Level) {
		t.Fatalf("written: %+v, %v", written, err)
	}
	for range 3 {
		if again, err := replay.Run(t.Context(), rec, replay.PlainRequest{}); err != nil || again.End != replay.EndFailure || again.Events != again.Total {
			t.Fatalf("a replay with it: %+v, %v", again, err)
		}
	}
	plain, err := replay.Run(t.Context(), rec, replay.PlainRequest{Common: replay.Common{Preemptions: []eventlog.Preemption{}}})
	if plain == nil || err == nil {
		t.Errorf("without it: %+v, %v", plain, err)
	}
	needs, failed, runs, err := explore.Needs(t.Context(), rec, image.Options{}, 1, time.Now().Add(searchBudget))
	if err != nil || len(needs) != len(r.Preemptions) || failed != 0 || runs != 1 {
		t.Errorf("needed: %+v; %d of %d failed without, %v", needs, failed, runs, err)
	}
	// An unneeded preemption is left only if there was no time to try without it.
	if !slices.ContainsFunc(needs, func(n explore.Need) bool { return n.Runs > 0 && n.Failed == 0 }) {
		t.Errorf("none is needed: %+v", needs)
	}
	for _, n := range needs {
		if n.Runs != 1 || n.At == 0 || n.Last == nil || (n.After == "") != (n.Class == eventlog.PointPC) {
			t.Errorf("needed: %+v", n)
		}
	}
	if r, err := explore.Prepare(t.Context(), rec, explore.Options{}); r != nil || err != nil {
		t.Errorf("a recording with a schedule was searched: %+v, %v", r, err)
	}
	again, err := explore.Search(t.Context(), rec, explore.Options{Attempts: 2})
	if err != nil || again.Reproduced || again.Attempts != 2 || again.Unexplored == "" {
		t.Errorf("a search of two attempts: %+v, %v", again, err)
	}
}

// Nothing is searched if the reason is known to be another.
func TestSearchCanHelp(t *testing.T) {
	p := build(t, "marks")
	rec, _ := p.fail(t, 1)
	if rec == nil {
		dir := recordtest.RecordProgram(t, p.exe, nil, "", p.Ends).Dir
		var err error
		if rec, err = record.Open(dir); err != nil {
			t.Fatal(err)
		}
		defer rec.Close()
	}
	for err, want := range map[error]bool{
		&replay.DivergenceError{Reason: replay.DiffersKind}:    true,
		&replay.DivergenceError{Reason: replay.DiffersMapping}: false,
		&replay.StuckError{}: true,
		errors.New("broken"): false,
	} {
		if got := explore.SearchCanHelp(rec, nil, err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// corpusVariable names the file that the table of all programs is written to.
const corpusVariable = "DIAGNOSE_SCHEDULES"

// timesVariable is the number of recordings of each program in the table.
const timesVariable = "DIAGNOSE_SCHEDULES_TIMES"

// row is a line of the table.
type row struct {
	name                  string
	runs, recordings      int
	direct, coarse, fine  int
	failed                int
	state                 int // the end has the recorded state
	attempts, preemptions []int
	seconds               []float64
	what                  string
}

// longest is the time limit for the recordings and searches of one program. A search that finds
// nothing takes two minutes.
const longest = 10 * time.Minute

// TestCorpus records each program until it fails, a number of times, and searches each
// recording.
func TestCorpus(t *testing.T) {
	path := os.Getenv(corpusVariable)
	if path == "" {
		t.Skip(corpusVariable + " does not say where the table goes")
	}
	times := 20
	if text := os.Getenv(timesVariable); text != "" {
		var err error
		if times, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	var rows []row
	for _, p := range []struct{ name, what string }{
		{"apache", "the log module of figure 1: two races"},
		{"control", "3 A: another branch is taken"},
		{"value", "3 B: another value is handed to the kernel"},
		{"condition", "3 C: a condition is waited for or not"},
		{"userlock", "3 D: a lock that the log does not have"},
		{"deadlock", "3 E: the order of locks and signals"},
		{"crasher", "a pointer that is taken away between a look and its use"},
		{"otherstate", "two words that two threads store in opposite orders"},
		{"lostsum", "lost additions to a counter"},
		{"lostnode", "lost nodes of a list"},
		{"checked", "a buffer that is taken away and given back, many times"},
		{"ring", "a ring buffer whose end moves before the value is there"},
	} {
		t.Run(p.name, func(t *testing.T) {
			r := corpusRow(t, p.name, times)
			r.what = p.what
			rows = append(rows, r)
			t.Logf("%+v", r)
		})
	}
	if err := writeTable(path, rows, times); err != nil {
		t.Fatal(err)
	}
}

func corpusRow(t *testing.T, name string, times int) row {
	p := build(t, name)
	r := row{name: name}
	for started := time.Now(); r.recordings < times && time.Since(started) < longest; {
		rec, runs := p.fail(t, mostRuns)
		r.runs += runs
		if rec == nil {
			continue
		}
		r.recordings++
		found, err := explore.Search(t.Context(), rec, explore.Options{Budget: 2 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		r.add(found)
		if !found.Reproduced {
			t.Logf("%s: %d attempts came to event %d of %d: %v; not tried: %s", name, found.Attempts, found.Events, found.Total, found.Err, found.Unexplored)
		}
		os.RemoveAll(filepath.Dir(rec.Dir))
	}
	return r
}

func (r *row) add(f *explore.Result) {
	if f.Reproduced && f.OtherState == 0 {
		r.state++
	}
	switch {
	case !f.Reproduced:
		r.failed++
		return
	case f.Level == explore.LevelPlain:
		r.direct++
		return
	case f.Level == explore.LevelCoarse:
		r.coarse++
	default:
		r.fine++
	}
	r.attempts = append(r.attempts, f.Attempts)
	r.preemptions = append(r.preemptions, len(f.Preemptions))
	r.seconds = append(r.seconds, f.Time.Seconds())
}

const (
	tableBegin = "<!-- search: begin -->\n"
	tableEnd   = "<!-- search: end -->\n"
)

// writeTable writes the table of all programs.
func writeTable(path string, rows []row, times int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "| Program | What it is | Recordings | Direct | Coarse | Fine | Not | Same state | Attempts | Preemptions | Seconds |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %d of %d runs | %d | %d | %d | %d | %d | %s | %s | %s |\n", r.name, r.what, r.recordings, r.runs,
			r.direct, r.coarse, r.fine, r.failed, r.state, spread(r.attempts, "%d"), spread(r.preemptions, "%d"), spread(r.seconds, "%.1f"))
	}
	return replaceTable(path, tableBegin, tableEnd, b.String())
}

// replaceTable writes a table between its marks in a file, and creates the file if there is none.
func replaceTable(path, begin, end, table string) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		before, after = string(text), ""
	}
	return os.WriteFile(path, []byte(before+begin+table+end+after), 0o644)
}

// spread formats the median and the maximum.
func spread[T int | float64](list []T, format string) string {
	if len(list) == 0 {
		return "-"
	}
	sorted := slices.Clone(list)
	slices.Sort(sorted)
	return fmt.Sprintf(format+" ("+format+")", sorted[len(sorted)/2], sorted[len(sorted)-1])
}
