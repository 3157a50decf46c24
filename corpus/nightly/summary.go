package nightly

import (
	"cmp"
	"context"
	"slices"
	"time"

	"diagnose/corpus"
	"diagnose/evidence/suppress"
	"diagnose/reports"
)

// SummaryVersion is the version of Summary's JSON, MAJOR.MINOR. reports/schema/nightly-1.json
// describes it.
const SummaryVersion = "1.6"

// Summary is the report of a night.
type Summary struct {
	// SchemaVersion is MAJOR.MINOR.
	SchemaVersion string `json:"schema_version"`
	// Corpus is the directory of the corpus, Run the work of this run.
	Corpus string `json:"corpus"`
	Run    Run    `json:"run"`
	// Since is the beginning of the period, which ends with the run's start. Before is the
	// beginning of the period before it, of the same length, for comparison.
	Since  time.Time `json:"since"`
	Before time.Time `json:"before"`
	// Failures counts those in the period, FailuresBefore those in the period before.
	Failures       int `json:"failures"`
	FailuresBefore int `json:"failures_before"`
	// Times are the numbers of failures in the last fourteen periods, the latest last.
	Times []int `json:"times"`
	// New are causes that are in no earlier summary. Back are those that were fixed and failed
	// in this period in a build that had not failed before. Known are the others that failed in
	// this period.
	New   []Group `json:"new"`
	Back  []Group `json:"back"`
	Known []Group `json:"known"`
	// Fixed are causes that were marked as fixed and have not failed since, the latest fix
	// first. Quiet counts the other known causes that did not fail in the period.
	Fixed []Group `json:"fixed"`
	Quiet int     `json:"quiet"`
	// Undiagnosed are failures that this version of diagnose could not diagnose. Partial are
	// those whose report lacks something.
	Undiagnosed []Missed `json:"undiagnosed"`
	Partial     []Missed `json:"partial"`
	// Suppressed are the suppressions that apply to failures of any time, Expired those that would
	// but for their last day, and Unused the entries of the file that fit no failure.
	Suppressed []Suppressed `json:"suppressed,omitempty"`
	Expired    []Suppressed `json:"expired_suppressions,omitempty"`
	Unused     []Suppressed `json:"unused_suppressions,omitempty"`
	// Tracking is the report to a bug tracker; nil if there was to be none.
	Tracking *Tracking `json:"tracking,omitempty"`
	// Alerting is what a webhook was sent; nil if there is none.
	Alerting *Alerting `json:"alerting,omitempty"`

	// quiet are the causes that Quiet counts.
	quiet []Group
}

// Group is a cluster with its numbers.
type Group struct {
	corpus.Cluster
	// Recent counts the failures in the period, Earlier those in the period before.
	Recent  int `json:"recent"`
	Earlier int `json:"earlier"`
	// Trend is rising, falling or steady.
	Trend string `json:"trend"`
	// Times are the numbers of failures in the last fourteen periods, the latest last.
	Times []int `json:"times"`
}

// Missed is a failure without a diagnosis, or with an incomplete one.
type Missed struct {
	// Entry is its name in the corpus, Program the name of the executable, Ended how it ended
	// in one word, At when.
	Entry   string    `json:"entry"`
	Program string    `json:"program"`
	Ended   string    `json:"ended,omitempty"`
	At      time.Time `json:"failed_at"`
	// Reason is why, or what the report lacks.
	Reason string `json:"reason"`
}

// times is the number of periods in a trend.
const times = 14

// Summarize summarizes the state of a corpus and the work of a run.
// Failures that a rule of the list or a label suppresses are counted apart, and in no other number.
func Summarize(ctx context.Context, c *corpus.Corpus, run *Run, since time.Duration, list *suppress.List) (*Summary, error) {
	s := &Summary{SchemaVersion: SummaryVersion, Corpus: c.Dir, Run: *run, Since: run.Started.Add(-since), Before: run.Started.Add(-2 * since),
		Times: make([]int, times), New: []Group{}, Back: []Group{}, Known: []Group{}, Fixed: []Group{}, Undiagnosed: []Missed{}, Partial: []Missed{}}
	entries, err := c.List(ctx, corpus.Filter{Dropped: true})
	if err != nil {
		return nil, err
	}
	suppressed := NewSuppressed(c, list, run.Started)
	entries, err = suppressed.Without(ctx, entries, s.Since)
	if err != nil {
		return nil, err
	}
	s.Suppressed, s.Expired, s.Unused = suppressed.Used(), suppressed.Expired(), suppressed.Unused()
	for i := range entries {
		s.count(&entries[i], since)
	}
	clusters, err := c.ClustersOf(ctx, entries)
	if err != nil {
		return nil, err
	}
	for i := range clusters {
		s.place(s.group(&clusters[i], since))
	}
	for _, list := range [][]Group{s.New, s.Back, s.Known} {
		sortGroups(list)
	}
	s.Redact(nil)
	slices.SortStableFunc(s.Fixed, func(a, b Group) int { return b.Fixed.Compare(*a.Fixed) })
	return s, nil
}

// sortGroups puts the most severe causes first, then the most frequent. They come sorted by all
// failures.
func sortGroups(list []Group) {
	slices.SortStableFunc(list, func(a, b Group) int {
		return cmp.Or(b.Estimate.Rank()-a.Estimate.Rank(), b.Recent-a.Recent)
	})
}

// Redact replaces secrets, and the texts that r selects, in all texts from failing programs and
// from their analyses, and in paths.
func (s *Summary) Redact(r *reports.Redaction) {
	d := r.Redactor()
	s.eachText(func(text string) string { d.Learn(text); return text }, func(line string) string { d.LearnSource(line); return line })
	s.eachText(d.Text, d.Source)
}

// eachText edits all texts, and all lines of source.
func (s *Summary) eachText(text, source func(string) string) {
	each := func(list ...*string) {
		for _, t := range list {
			*t = text(*t)
		}
	}
	each(&s.Corpus, &s.Run.MemoryWhy)
	if s.Run.Fleet != nil {
		s.Run.Fleet.eachText(each)
	}
	for _, list := range [][]Group{s.New, s.Back, s.Known, s.Fixed, s.quiet} {
		for i := range list {
			g := &list[i]
			each(&g.Summary, &g.Program, &g.Note)
			g.Lines = slices.Clone(g.Lines)
			for k := range g.Lines {
				g.Lines[k] = source(g.Lines[k])
			}
		}
	}
	for _, list := range [][]Missed{s.Undiagnosed, s.Partial} {
		for i := range list {
			each(&list[i].Program, &list[i].Reason)
		}
	}
	for _, list := range [][]Suppressed{s.Suppressed, s.Expired, s.Unused} {
		for i := range list {
			each(&list[i].Reason)
		}
	}
	if k := s.Alerting; k != nil {
		each(&k.Error)
		for i := range k.Alerts {
			each(&k.Alerts[i].Error)
		}
	}
	if k := s.Tracking; k != nil {
		each(&k.Tracker, &k.Error)
		for i := range k.Issues {
			each(&k.Issues[i].Issue, &k.Issues[i].URL, &k.Issues[i].Note, &k.Issues[i].Error)
		}
	}
}

func (s *Summary) count(e *corpus.Entry, since time.Duration) {
	if e.Passed {
		return
	}
	if n := s.span(e.FailedAt, since); n >= 0 {
		s.Times[n]++
	}
	if !e.FailedAt.Before(s.Since) {
		s.Failures++
	} else if !e.FailedAt.Before(s.Before) {
		s.FailuresBefore++
	}
	d := e.Diagnosis
	if d == nil || d.Version != s.Run.Version || d.Reason == "" {
		return
	}
	m := Missed{e.ID, e.Name(), e.Ended, e.FailedAt, d.Reason}
	if d.Diagnosed {
		s.Partial = append(s.Partial, m)
	} else {
		s.Undiagnosed = append(s.Undiagnosed, m)
	}
}

// span returns the index of the period of a failure; -1: before all of them.
func (s *Summary) span(at time.Time, since time.Duration) int {
	back := 0 // a failure during the night is in the latest
	if at.Before(s.Run.Started) {
		back = int((s.Run.Started.Sub(at) - 1) / since)
	}
	return max(-1, times-1-back)
}

func (s *Summary) group(c *corpus.Cluster, since time.Duration) Group {
	g := Group{Cluster: *c, Times: make([]int, times)}
	for i := range c.Entries {
		if n := s.span(c.Entries[i].FailedAt, since); n >= 0 {
			g.Times[n]++
		}
	}
	g.Recent, g.Earlier = g.Times[times-1], g.Times[times-2]
	switch {
	case g.Recent > g.Earlier:
		g.Trend = "rising"
	case g.Recent < g.Earlier:
		g.Trend = "falling"
	default:
		g.Trend = "steady"
	}
	return g
}

// place adds a group to its list. A group that another night reported after this run began is
// also new to this one.
func (s *Summary) place(g Group) {
	fresh := func(at *time.Time) bool { return at == nil || !at.Before(s.Run.Started) }
	switch {
	case g.Back != "" && fresh(g.Returned):
		s.Back = append(s.Back, g)
	case fresh(g.Reported):
		s.New = append(s.New, g)
	case g.Recent > 0:
		s.Known = append(s.Known, g)
	case g.Fixed != nil && g.Back == "":
		s.Fixed = append(s.Fixed, g)
	default:
		s.Quiet++
		s.quiet = append(s.quiet, g)
	}
}

// Alarming reports whether the summary needs attention: there is a new cause, or one is back.
func (s *Summary) Alarming() bool { return len(s.New)+len(s.Back) > 0 }

// Told notes in the corpus the groups that the summary has as new and as back. Call it after
// the summary was delivered: if the night is killed before, the next one reports them again.
func (s *Summary) Told(ctx context.Context, c *corpus.Corpus) error {
	digests := func(list []Group) []string {
		var out []string
		for i := range list {
			out = append(out, list[i].Digest)
		}
		return out
	}
	// A cause that is back has been reported, perhaps by another night.
	return c.Reported(ctx, time.Now(), digests(slices.Concat(s.New, s.Back)), digests(s.Back))
}
