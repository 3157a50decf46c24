package nightly

import (
	"context"
	"path/filepath"

	"diagnose/corpus"
	"diagnose/corpus/analysis"
)

// mostPassing is how many recordings a failed one is compared with.
const mostPassing = 3

// analyse analyses a failure until the night ends. The error is errOver, that of the context, or
// says that no process can be started.
func (n *night) analyse(ctx context.Context, e *corpus.Entry) (*corpus.Result, error) {
	var passing []string
	if e.Kind == corpus.KindRecording {
		passing = n.passing[build{e.Program, e.BuildID}]
	}
	within, cancel := ctx, context.CancelFunc(func() {})
	if !n.deadline.IsZero() {
		within, cancel = context.WithDeadlineCause(ctx, n.deadline, errOver)
	}
	defer cancel()
	r, err := n.analyser.Analyse(within, analysis.Failure{Kind: e.Kind, Dir: n.inside(e), Passing: passing})
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		err = errOver
	}
	return r, err
}

// build is an executable, by its path and its build-id.
type build struct{ program, id string }

// comparable returns the recordings that a failure of each build is compared with: of runs that
// did not fail, the newest ones.
func (n *night) comparable(all []corpus.Entry) map[build][]string {
	set := map[build][]string{}
	for i := range all {
		e := &all[i]
		b := build{e.Program, e.BuildID}
		if e.Passed && e.Kind == corpus.KindRecording && e.BuildID != "" && e.DroppedAt == nil && n.trusts(e) && len(set[b]) < mostPassing {
			set[b] = append(set[b], n.inside(e))
		}
	}
	return set
}

// inside returns the directory of the recording to diagnose in an entry.
func (n *night) inside(e *corpus.Entry) string {
	return filepath.Join(n.Corpus.EntryDir(e.ID), filepath.FromSlash(e.Culprit))
}
