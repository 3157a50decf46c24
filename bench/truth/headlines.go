package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"diagnose/bench/truth/limit"
	"diagnose/bench/truth/mutant"
	"diagnose/bench/truth/page"
	"diagnose/bench/truth/score"
	"diagnose/bench/truth/store"
	"diagnose/bench/truth/ways"
)

// headlines judges recordings that are kept, and writes how good each kind of headline is, as far as the time allows.
func (b *bench) headlines(ctx context.Context, list []store.Entry) error {
	return errors.Join(b.judgeKept(ctx, list), b.writeHeadlines())
}

// judgeKept judges the recordings that are kept of the mutants outside of the hold-out, unless the same code did before.
func (b *bench) judgeKept(ctx context.Context, list []store.Entry) error {
	if err := b.buildTool(ctx); err != nil {
		return err
	}
	makers := map[string]*mutant.Workshop{}
	defer closeAll(makers)
	for i, e := range list {
		if e.HoldOut() {
			continue
		}
		if b.timeUp(ctx) {
			return fmt.Errorf("the time is up: %d of %d mutants are left for the next time", len(list)-i, len(list))
		}
		if r, err := b.judged(e); r != nil || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		k, err := b.kept(ctx, e, makers)
		if err != nil {
			return err
		}
		if err := b.headline(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// headline judges the kept recording of a mutant, if there is one. k may be nil.
func (b *bench) headline(ctx context.Context, k *mutant.Kept) error {
	r, text, err := b.keptResult(ctx, k)
	if r == nil || err != nil {
		return err
	}
	b.progress.note("%s: %s", k.ID, r.Outcome)
	r.Way = ways.Kept
	if text != nil {
		err = b.store.SaveReport(k.ID, r.Way, text)
	}
	return errors.Join(err, b.store.SaveResult(r))
}

// judged is the result of a mutant's recording by the code that is measured; nil: there is none.
func (b *bench) judged(e store.Entry) (*store.Result, error) {
	for _, way := range []ways.Way{ways.Recording, ways.Kept} {
		r, err := b.store.LoadResult(e.ID, way)
		if err != nil || r != nil && r.Code.Hash == b.code.Hash {
			return r, err
		}
	}
	return nil, nil
}

// writeHeadlines writes the table of the results by the code that is measured.
func (b *bench) writeHeadlines() error {
	var results []store.Result
	for _, e := range b.list {
		if e.HoldOut() {
			continue
		}
		r, err := b.judged(e)
		if err != nil {
			return err
		}
		if r != nil {
			results = append(results, *r)
		}
	}
	var text bytes.Buffer
	if err := page.Headlines(&text, results, b.code.Commit); err != nil {
		return err
	}
	return os.WriteFile(b.options.path(b.options.headlines), text.Bytes(), 0o644)
}

// keptResult judges the recording of a mutant that is kept. It is nil if there is none. k may be nil.
func (b *bench) keptResult(ctx context.Context, k *mutant.Kept) (*store.Result, []byte, error) {
	if k == nil {
		return nil, nil, nil
	}
	f, err := ways.Recorded(b.store.Mutant(k.ID))
	if f == nil || err != nil {
		return nil, nil, err
	}
	scratch := filepath.Join(b.folders.Scratch, fmt.Sprint("kept-", os.Getpid()))
	if err := limit.Empty(scratch); err != nil {
		return nil, nil, err
	}
	r := &store.Result{ID: k.ID, Way: ways.Recording, Operator: k.Bug.Operator, Class: string(k.Bug.Class), Level: k.Level, Code: *b.code}
	doc, text, err := b.tool.Diagnose(ctx, f, scratch)
	err = errors.Join(err, os.RemoveAll(scratch))
	var failed *ways.ToolError
	if errors.As(err, &failed) {
		r.Outcome = score.ToolFailed
		return r, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	r.Score, r.Headline = score.Judge(doc.Case, &k.Answer), score.HeadlineOf(doc.Case)
	return r, text, nil
}
