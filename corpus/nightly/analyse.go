package nightly

import (
	"cmp"
	"context"
	"path/filepath"

	"diagnose/corpus"
	"diagnose/corpus/analysis"
)

// mostPassing is how many recordings a failed one is compared with.
const mostPassing = 3

// analyse analyses a failure until the night ends. The error is errOver, that of the context, an
// *UnableError, or says that the analysis cannot be begun.
func (n *night) analyse(ctx context.Context, e *corpus.Entry, priority int) (*corpus.Result, error) {
	var passing []Place
	if e.Kind == corpus.KindRecording {
		passing = n.passing[build{e.Program, e.BuildID}]
	}
	within, cancel := ctx, context.CancelFunc(func() {})
	if !n.deadline.IsZero() {
		within, cancel = context.WithDeadline(ctx, n.deadline)
	}
	defer cancel()
	r, err := n.analyseWithin(within, e, passing, priority)
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		err = errOver
	}
	return r, err
}

func (n *night) analyseWithin(ctx context.Context, e *corpus.Entry, passing []Place, priority int) (*corpus.Result, error) {
	if n.Remote != nil {
		return n.Remote.Analyse(ctx, Task{Entry: e, Failure: n.place(e), Passing: passing, Time: n.Time, Memory: n.Memory, Retry: n.Retry, Priority: priority})
	}
	f := analysis.Failure{Kind: e.Kind, Dir: n.place(e).path(), Time: n.Time, Memory: n.Memory}
	for _, p := range passing {
		f.Passing = append(f.Passing, p.path())
	}
	return n.analyser.Analyse(ctx, f)
}

// stored tells those who analysed a failure that the corpus has their result. An interruption
// does not stop it: the result would be left with them.
func (n *night) stored(ctx context.Context, entry string) error {
	if n.Remote == nil {
		return nil
	}
	return n.Remote.Stored(context.WithoutCancel(ctx), entry)
}

// build is an executable, by its path and its build-id.
type build struct{ program, id string }

// comparable returns the recordings that a failure of each build is compared with: of runs that
// did not fail, the newest ones.
func (n *night) comparable(all []corpus.Entry) map[build][]Place {
	set := map[build][]Place{}
	for i := range all {
		e := &all[i]
		b := build{e.Program, e.BuildID}
		if e.Passed && e.Kind == corpus.KindRecording && e.BuildID != "" && e.DroppedAt == nil && n.trusts(e) && len(set[b]) < mostPassing {
			set[b] = append(set[b], n.place(e))
		}
	}
	return set
}

// place returns where the recording to diagnose is in an entry.
func (n *night) place(e *corpus.Entry) Place {
	return Place{n.Corpus.EntryDir(e.ID), cmp.Or(e.Culprit, ".")}
}

func (p Place) path() string { return filepath.Join(p.Dir, filepath.FromSlash(p.Inside)) }
