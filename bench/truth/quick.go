package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"diagnose/bench/truth/limit"
	"diagnose/bench/truth/page"
	"diagnose/bench/truth/score"
	"diagnose/bench/truth/store"
	"diagnose/bench/truth/ways"
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

// quickResult is nil if no recording of the mutant is kept.
func (b *bench) quickResult(ctx context.Context, e store.Entry) (*store.Result, error) {
	k, known, err := b.store.LoadMutant(e.ID, e.Digest)
	if !known || k == nil || err != nil {
		return nil, err
	}
	f, err := ways.Recorded(b.store.Mutant(e.ID))
	if f == nil || err != nil {
		return nil, err
	}
	scratch := filepath.Join(b.folders.Scratch, "quick")
	if err := limit.Empty(scratch); err != nil {
		return nil, err
	}
	r := &store.Result{ID: e.ID, Way: ways.Recording, Operator: k.Bug.Operator, Class: string(k.Bug.Class), Level: k.Level, Code: *b.code}
	doc, _, err := b.tool.Diagnose(ctx, f, scratch)
	var failed *ways.ToolError
	if errors.As(err, &failed) {
		r.Outcome = score.ToolFailed
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	r.Score = score.Judge(doc.Case, &k.Answer)
	return r, nil
}
