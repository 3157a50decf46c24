package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"diagnose/bench/truth/page"
	"diagnose/bench/truth/store"
)

const (
	quickMutants = 60
	quickTime    = 10 * time.Minute
)

// quick judges recordings that are kept, and prints the totals.
func (b *bench) quick(ctx context.Context) error {
	b.until = time.Now().Add(quickTime)
	if err := b.buildTool(ctx); err != nil {
		return err
	}
	b.tool.Limit = min(b.tool.Limit, 30*time.Second)
	var results []store.Result
	for _, e := range store.Spread(b.selected()) {
		if len(results) == quickMutants || b.timeUp(ctx) {
			break
		}
		r, err := b.quickResult(ctx, e)
		if err != nil {
			return err
		}
		if r != nil {
			results = append(results, *r)
			b.progress.note("%d: %s", len(results), r.Outcome)
		}
	}
	if len(results) == 0 {
		return errors.New("no recordings are kept: run make truth first")
	}
	fmt.Printf("%d of %d recordings, commit %s\n\n", len(results), quickMutants, b.code.Commit)
	return page.Totals(os.Stdout, results)
}

// quickResult is nil if no recording of the mutant is kept, or not all sanitizers were asked about it: without an answer of theirs
// a right report counts as wrong.
func (b *bench) quickResult(ctx context.Context, e store.Entry) (*store.Result, error) {
	k, known, err := b.store.LoadMutant(e.ID, e.Digest)
	if !known || k == nil || !k.Answered() || err != nil {
		return nil, err
	}
	r, _, err := b.keptResult(ctx, k)
	return r, err
}
