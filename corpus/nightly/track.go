package nightly

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"diagnose/corpus"
	"diagnose/reports"
	"diagnose/reports/tracker"
)

// TrackOptions say how a tracker is told of a night.
type TrackOptions struct {
	Tracker tracker.Tracker
	// New bounds how many issues are opened.
	New int
	// Redact is what is replaced in issues besides secrets.
	Redact *reports.Redaction
	// DryRun changes neither the tracker nor what the corpus knows of it.
	DryRun bool
}

// Tracking is what a tracker was told, or would be.
type Tracking struct {
	// Tracker is its name; DryRun says that it was not told.
	Tracker string `json:"tracker"`
	DryRun  bool   `json:"dry_run"`
	// Issues are what was done, in the order in which it was.
	Issues []Tracked `json:"issues"`
	// Later counts causes that are left for another night, as so many issues were opened.
	Later int `json:"later"`
	// Error is why the rest was not told.
	Error string `json:"error,omitempty"`
}

// Tracked is what was done for one cause.
type Tracked struct {
	// Digest is the cluster's, Kind its kind of failure.
	Digest string `json:"digest"`
	Kind   string `json:"kind"`
	// Action is what was done: opened, commented, reopened, said already, left closed.
	Action tracker.Action `json:"action,omitempty"`
	// Issue is its number or key in the tracker, URL where people see it.
	Issue string `json:"issue,omitempty"`
	URL   string `json:"url,omitempty"`
	// Duplicates are issues of the same cause that were closed.
	Duplicates []string `json:"duplicates,omitempty"`
	// Note is what could not be done besides.
	Note string `json:"note,omitempty"`
	// Error is why it was not told.
	Error string `json:"error,omitempty"`
}

// pauseBetween is how long after a cause was told of it is not told of again, unless it
// is back.
const pauseBetween = 20 * time.Hour

// Track tells a tracker what a summary has, and notes in the corpus what was told. What
// a tracker does not do is in the result, and tried again by the next night; the error
// is about the corpus, or the context's.
func (s *Summary) Track(ctx context.Context, c *corpus.Corpus, opts TrackOptions) error {
	t := &Tracking{Tracker: opts.Tracker.Name(), DryRun: opts.DryRun, Issues: []Tracked{}}
	s.Tracking = t
	opened := 0
	for _, g := range slices.Concat(s.New, s.Back, s.Known) {
		was, err := c.Tracked(ctx, t.Tracker, g.Digest)
		if err != nil {
			return err
		}
		if !due(&g, &was, s.Run.Started) {
			continue
		}
		if was.Issue == "" && opened >= opts.New {
			t.Later++
			continue
		}
		result, err := s.tell(ctx, c, &g, opts)
		done := Tracked{Digest: g.Digest, Kind: g.Kind, Action: result.Action, Issue: result.Issue, URL: result.URL, Duplicates: result.Duplicates, Note: result.Note}
		if errors.Is(err, corpus.ErrTaken) {
			continue // another night tells it
		}
		if ctx.Err() != nil {
			return fmt.Errorf("nightly: interrupted: %w", context.Cause(ctx))
		}
		var no *tracker.Error
		switch {
		case err == nil:
		case !errors.As(err, &no):
			return err
		case tracker.Final(err):
			t.Error = err.Error()
			return nil
		default:
			done.Error = err.Error()
		}
		if done.Action == tracker.Opened {
			opened++
		}
		t.Issues = append(t.Issues, done)
	}
	return nil
}

// due reports whether there is something to tell.
func due(g *Group, was *corpus.Tracked, now time.Time) bool {
	switch {
	case was.Issue == "" || !was.Attached:
		return true
	case g.Count <= was.Count && !g.Last.After(was.Last):
		return false
	}
	return g.Back != "" || now.Sub(was.At) >= pauseBetween
}

// tell tells of one cause, which no other process does at the same time.
func (s *Summary) tell(ctx context.Context, c *corpus.Corpus, g *Group, opts TrackOptions) (tracker.Result, error) {
	name := opts.Tracker.Name()
	was, err := c.Tracked(ctx, name, g.Digest)
	if !opts.DryRun {
		was, err = c.ClaimTracked(ctx, name, g.Digest)
	}
	if err != nil {
		return tracker.Result{}, err
	}
	text, err := c.Report(ctx, g.Example)
	var doc reports.Document
	if err == nil {
		err = json.Unmarshal(text, &doc)
	}
	var done tracker.Result
	if err == nil {
		done, err = opts.Tracker.Upsert(ctx, &tracker.Report{Digest: g.Digest, Case: opts.Redact.Case(doc.Case), Version: doc.Tool.Version, Count: g.Count, Recent: g.Recent, Earlier: g.Earlier,
			First: g.First, Last: g.Last, Since: s.Since, Example: g.Example, Issue: was.Issue, Attached: was.Attached, BackSince: g.BackSince})
	}
	var no *tracker.Error
	if err != nil && !errors.As(err, &no) && ctx.Err() == nil {
		// A report that cannot be read or written must not keep the others from it.
		err = &tracker.Error{Kind: tracker.Refused, Tracker: name, Err: err}
	}
	if opts.DryRun {
		return done, err
	}
	// What was done is noted even if this process is being ended.
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		return done, errors.Join(err, c.FinishTracked(ctx, name, g.Digest, "", nil))
	}
	now := corpus.Tracked{Issue: done.Issue, URL: done.URL, Attached: done.Attached, Count: g.Count, Last: g.Last, At: time.Now()}
	return done, c.FinishTracked(ctx, name, g.Digest, "tracker: "+string(done.Action), &now)
}
