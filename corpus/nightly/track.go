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

// TrackOptions say how to report a night to a tracker.
type TrackOptions struct {
	Tracker tracker.Tracker
	// New is the maximum number of issues to open.
	New int
	// Redact selects the texts to replace in issues, in addition to secrets.
	Redact *reports.Redaction
	// DryRun changes neither the tracker nor the corpus's data about it.
	DryRun bool
}

// Tracking is the report to a tracker, or the report that it would get.
type Tracking struct {
	// Tracker is the name of the tracker. DryRun says that nothing was reported.
	Tracker string `json:"tracker"`
	DryRun  bool   `json:"dry_run"`
	// Issues are the changes, in their order.
	Issues []Tracked `json:"issues"`
	// Later counts causes left for another night, as enough issues were opened.
	Later int `json:"later"`
	// Error is why the rest was not reported.
	Error string `json:"error,omitempty"`
}

// Tracked is the report of one cause.
type Tracked struct {
	// Digest is the digest of the cluster, Kind its kind of failure.
	Digest string `json:"digest"`
	Kind   string `json:"kind"`
	// Action is the action: opened, commented, reopened, said already, left closed.
	Action tracker.Action `json:"action,omitempty"`
	// Issue is the number or key in the tracker, URL its page.
	Issue string `json:"issue,omitempty"`
	URL   string `json:"url,omitempty"`
	// Duplicates are issues of the same cause that were closed.
	Duplicates []string `json:"duplicates,omitempty"`
	// Note says which other action failed.
	Note string `json:"note,omitempty"`
	// Error is why it was not reported.
	Error string `json:"error,omitempty"`
}

// pauseBetween is how long a cause is not reported again after a report, unless it is back.
const pauseBetween = 20 * time.Hour

// Track reports a summary to a tracker, and stores the reports in the corpus. A failure of the
// tracker is in the result, and the next night tries again. The error is that of the corpus or
// of the context.
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
			continue // another night reports it
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

// due reports whether there is something to report.
func due(g *Group, was *corpus.Tracked, now time.Time) bool {
	switch {
	case was.Issue == "" || !was.Attached:
		return true
	case g.Count <= was.Count && !g.Last.After(was.Last):
		return false
	}
	return g.Back != "" || now.Sub(was.At) >= pauseBetween
}

// tell reports one cause. No other process reports it at the same time.
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
		// An unreadable or unwritable report must not prevent the other reports.
		err = &tracker.Error{Kind: tracker.Refused, Tracker: name, Err: err}
	}
	if opts.DryRun {
		return done, err
	}
	// The action is stored even if this process is being ended.
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		return done, errors.Join(err, c.FinishTracked(ctx, name, g.Digest, "", nil))
	}
	now := corpus.Tracked{Issue: done.Issue, URL: done.URL, Attached: done.Attached, Count: g.Count, Last: g.Last, At: time.Now()}
	return done, c.FinishTracked(ctx, name, g.Digest, "tracker: "+string(done.Action), &now)
}
