package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"diagnose/bench/truth/mutant"
	"diagnose/bench/truth/source"
	"diagnose/bench/truth/store"
)

// search finds failing mutants of each package and adds them to the list.
func (b *bench) search(ctx context.Context) error {
	for i := range source.Packages {
		p := &source.Packages[i]
		if !b.wanted(p.Name) || b.count(p.Name) >= b.options.search || b.timeUp(ctx) {
			continue
		}
		w, err := b.workshop(ctx, p)
		if err != nil {
			// One program that cannot be built here must not keep the others out.
			fmt.Fprintln(os.Stderr, "truth:", err)
			continue
		}
		if err := errors.Join(b.searchIn(ctx, w, p.Name), w.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) count(name string) (n int) {
	for _, e := range b.list {
		if e.Package == name {
			n++
		}
	}
	return n
}

// workshop fetches and builds a package.
func (b *bench) workshop(ctx context.Context, p *source.Package) (*mutant.Workshop, error) {
	b.progress.note("%s: fetching", p.Name)
	src, err := b.archive.Fetch(ctx, p)
	if err != nil {
		return nil, err
	}
	return mutant.Open(ctx, src, b.folders, func(text string) { b.progress.note("%s", text) })
}

// shareOfOperator keeps bugs that fail nearly always, such as a second free, from being most
// of the list: no operator makes much more than this part of a package's mutants.
const shareOfOperator = 4

func (b *bench) searchIn(ctx context.Context, w *mutant.Workshop, name string) error {
	if err := b.prune(w, name); err != nil {
		return err
	}
	operators, err := b.operators(w, name)
	if err != nil {
		return err
	}
	tried := map[string]bool{} // several seeds may make one bug
	for seed := range uint64(b.options.tries) {
		if b.count(name) >= b.options.search || b.timeUp(ctx) {
			return nil
		}
		m, err := w.Choose(seed)
		if err != nil {
			return err
		}
		if operators[m.Bug.Operator] > b.options.search/shareOfOperator || tried[store.Digest(m)] {
			continue
		}
		tried[store.Digest(m)] = true
		k, err := b.make(ctx, w, m)
		if err != nil {
			return err
		}
		if k == nil || b.listed(m) {
			continue
		}
		operators[m.Bug.Operator]++
		b.list = append(b.list, store.Entry{ID: m.ID, Digest: store.Digest(m)})
		if err := store.WriteList(b.options.path(b.options.list), b.list); err != nil {
			return err
		}
	}
	return nil
}

// prune removes the mutants of a package whose seeds make other bugs now.
func (b *bench) prune(w *mutant.Workshop, name string) error {
	var kept []store.Entry
	for _, e := range b.list {
		if e.Package == name {
			m, err := w.Choose(e.Seed)
			if err != nil {
				return err
			}
			if m.Version != e.Version || store.Digest(m) != e.Digest {
				continue
			}
		}
		kept = append(kept, e)
	}
	b.list = kept
	return nil
}

// operators counts the mutants of a package that are in the list by their operators.
func (b *bench) operators(w *mutant.Workshop, name string) (map[string]int, error) {
	counts := map[string]int{}
	for _, e := range b.list {
		if e.Package != name {
			continue
		}
		m, err := w.Choose(e.Seed)
		if err != nil {
			return nil, err
		}
		counts[m.Bug.Operator]++
	}
	return counts, nil
}

// listed reports whether the list has a bug already, by this seed or another one.
func (b *bench) listed(m *mutant.Mutant) bool {
	return slices.ContainsFunc(b.list, func(e store.Entry) bool {
		return e.Package == m.Package && (e.Seed == m.Seed || e.Digest == store.Digest(m))
	})
}

// make returns the mutant, as it was kept or made now; nil: it is of no use.
func (b *bench) make(ctx context.Context, w *mutant.Workshop, m *mutant.Mutant) (*mutant.Kept, error) {
	digest := store.Digest(m)
	k, known, err := b.store.LoadMutant(m.ID, digest)
	if known || err != nil {
		return k, err
	}
	k, drop, err := w.Make(ctx, m, filepath.Join(b.store.Mutant(m.ID), "program", m.Package))
	if err != nil || ctx.Err() != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	if k != nil {
		b.progress.note("%s: fails (%s)", m.ID, k.Failure)
	} else {
		b.progress.note("%s: %s", m.ID, drop)
	}
	if k != nil {
		k.Answer.Accept(m, b.operatorsCode)
	}
	return k, b.store.SaveMutant(m.ID, digest, k, drop)
}
