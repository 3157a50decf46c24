package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"diagnose/bench/truth/limit"
	"diagnose/bench/truth/mutant"
	"diagnose/bench/truth/score"
	"diagnose/bench/truth/source"
	"diagnose/bench/truth/store"
	"diagnose/bench/truth/ways"
)

// judge diagnoses the mutants of a list in each way, unless the same code did before.
func (b *bench) judge(ctx context.Context, list []store.Entry) error {
	if err := b.buildTool(ctx); err != nil {
		return err
	}
	makers := map[string]*mutant.Workshop{}
	defer closeAll(makers)
	for i, e := range list {
		if b.timeUp(ctx) {
			return fmt.Errorf("the time is up: %d of %d mutants are left for the next time", len(list)-i, len(list))
		}
		k, err := b.kept(ctx, e, makers)
		if err != nil {
			return err
		}
		if k == nil {
			continue
		}
		if err := b.archive.Restore(ctx, k.Package, &k.Run); err != nil {
			return err
		}
		for _, way := range b.ways() {
			if err := b.judgeIn(ctx, k, way, i, len(list)); err != nil {
				return err
			}
		}
	}
	return nil
}

// closeAll closes workshops; some are nil.
func closeAll(makers map[string]*mutant.Workshop) {
	for _, w := range makers {
		if w != nil {
			_ = w.Close() // the next Open restores what this leaves
		}
	}
}

func (b *bench) ways() []ways.Way {
	var list []ways.Way
	for w := range strings.SplitSeq(b.options.ways, ",") {
		if slices.Contains(ways.All, ways.Way(w)) {
			list = append(list, ways.Way(w))
		}
	}
	return list
}

// kept is the mutant of an entry, which is made again where it is not kept. It is nil if the
// package cannot be had, or the seed makes another bug now.
func (b *bench) kept(ctx context.Context, e store.Entry, makers map[string]*mutant.Workshop) (*mutant.Kept, error) {
	k, known, err := b.store.LoadMutant(e.ID, e.Digest)
	if err != nil || known && (k == nil || k.Answered() && k.Answer.Operators == b.operatorsCode) {
		return k, err
	}
	w, opened := makers[e.Package]
	if p := source.Named(e.Package); !opened && p != nil {
		if w, err = b.workshop(ctx, p); err != nil {
			fmt.Fprintln(os.Stderr, "truth:", err)
			w = nil
		}
		makers[e.Package] = w
	}
	if w == nil {
		return nil, ctx.Err()
	}
	m, err := w.Choose(e.Seed)
	if err != nil {
		return nil, err
	}
	if m.Version != e.Version || store.Digest(m) != e.Digest {
		fmt.Fprintf(os.Stderr, "truth: %s: the seed makes another bug now; search again\n", e.ID)
		return nil, nil
	}
	if !known {
		return b.make(ctx, w, m)
	}
	if !k.Answered() { // it was made before all sanitizers were asked
		err = w.Again(ctx, m, k)
	}
	k.Bug = m.Bug
	if k.Answer.Accept(m, b.operatorsCode) {
		err = errors.Join(err, b.store.DropResults(k.ID))
	}
	return k, errors.Join(err, b.store.SaveMutant(k.ID, e.Digest, k, ""))
}

// parted says whether the branches at which the run left the way of those that pass name the bug.
func parted(r *store.Result) string {
	switch {
	case !r.Compared:
		return ""
	case r.Parted:
		return "; where it leaves the way of passing runs is the bug, or has a value from there"
	}
	return "; where it leaves the way of passing runs is not the bug"
}

func (b *bench) judgeIn(ctx context.Context, k *mutant.Kept, way ways.Way, i, of int) error {
	if way == ways.Turns && k.Attempts() == 1 { // it has no threads
		return nil
	}
	last, err := b.store.LoadResult(k.ID, way)
	if err != nil || last != nil && last.Code.Hash == b.code.Hash {
		return err
	}
	r, text, err := b.diagnose(ctx, k, way)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.HoldOut() {
		b.progress.note("%d/%d: one of the hold-out", i+1, of)
	} else {
		b.progress.note("%d/%d: %s %s, %s: %s%s", i+1, of, k.ID, k.Bug.Operator, way, r.Outcome, parted(r))
	}
	if text != nil {
		if err := b.store.SaveReport(k.ID, way, text); err != nil {
			return err
		}
	}
	return b.store.SaveResult(r)
}

// mostPassing is how many recordings of runs that passed are given.
const mostPassing = 6

// diagnose has the mutant fail in one way, and judges the report. The same input on the
// original must not be reported.
func (b *bench) diagnose(ctx context.Context, k *mutant.Kept, way ways.Way) (*store.Result, []byte, error) {
	r := &store.Result{ID: k.ID, Way: way, Operator: k.Bug.Operator, Class: string(k.Bug.Class), Level: k.Level, Code: *b.code}
	dir := filepath.Join(b.store.Mutant(k.ID), string(way))
	twin, err := b.tool.Reproduce(ctx, way, ways.Program{Path: k.Original, Run: k.Run, Attempts: k.Attempts()}, dir)
	if err != nil {
		return nil, nil, err
	}
	r.Twin = twin != nil
	p := ways.Program{Path: k.Program, Run: k.Run, Attempts: k.Attempts()}
	if way == ways.Passing {
		if p.Passes, err = k.PassingRuns(ctx, b.folders, mostPassing); err != nil {
			return nil, nil, err
		}
	}
	f, err := b.tool.Reproduce(ctx, way, p, dir)
	if err != nil {
		return nil, nil, err
	}
	if f == nil {
		r.Outcome = score.NotReproduced
		return r, nil, limit.Empty(dir)
	}
	start := time.Now()
	doc, text, err := b.tool.Diagnose(ctx, f, dir)
	r.Seconds = time.Since(start).Seconds()
	var failed *ways.ToolError
	switch {
	case errors.As(err, &failed):
		r.Outcome = score.ToolFailed
		b.progress.note("%v", failed)
	case err != nil:
		return nil, nil, err
	default:
		r.Score, r.Headline = score.Judge(doc.Case, &k.Answer), score.HeadlineOf(doc.Case)
		r.Compared, r.Parted = score.Parted(doc.Case, &k.Answer)
	}
	if way == ways.Core || way == ways.Agent {
		return r, text, limit.Empty(dir) // cores are large
	}
	return r, text, nil
}
