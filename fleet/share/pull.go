package share

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"diagnose/corpus"
	"diagnose/fleet/engine"
)

// mostDescription is the maximum size of a description, in bytes.
const mostDescription = 256 << 20

// PullOptions say which failures a pull fetches.
type PullOptions struct {
	// Filter selects among all of the team. Its IDs are prefixes of entries' names; each must be
	// one entry's. Clusters cannot be selected: they are the corpus's.
	Filter corpus.Filter
	// Bytes is the maximum size of an entry, holes included; 0 is 64 GiB.
	Bytes int64
	// Note is told of each entry; nil: it is not.
	Note func(PullProgress)
}

// PullProgress says how far a pull is.
type PullProgress struct{ Done, All int }

// Pulled is the result of a pull.
type Pulled struct {
	// Added are the names of the entries that were added, Existed counts those that the corpus
	// had or has dropped.
	Added   []string `json:"added"`
	Existed int      `json:"existed"`
	// Failed has a line for each entry that could not be added.
	Failed []string `json:"failed,omitempty"`
}

// Pull adds to a corpus the failures of an engine that it does not have. What comes is not
// trusted: it is checked like an archive, and marked as imported. An entry that is damaged is
// told in the result, and the others are pulled; other errors end the pull, which resumes when
// it is repeated.
func Pull(ctx context.Context, e *engine.Engine, c *corpus.Corpus, o PullOptions) (Pulled, error) {
	done := Pulled{Added: []string{}}
	keys, err := e.RecordKeys(ctx, entriesKind)
	if err != nil {
		return done, err
	}
	named := len(o.Filter.IDs) > 0
	if keys, err = chosen(keys, o.Filter.IDs); err != nil {
		return done, err
	}
	o.Filter.IDs = nil
	have, err := names(ctx, c, !named)
	if err != nil {
		return done, err
	}
	p := &puller{e, c, &o, fmt.Sprintf("%s, team %s", e.URL(), e.Team())}
	all := len(keys)
	keys = slices.DeleteFunc(keys, func(key string) bool { return have[key] })
	done.Existed = all - len(keys)
	records, err := p.records(ctx, keys)
	if err != nil {
		return done, err
	}
	for i, key := range keys {
		if o.Note != nil {
			o.Note(PullProgress{i, len(keys)})
		}
		added, err := p.entry(ctx, key, records[i])
		switch {
		case err == nil && added:
			done.Added = append(done.Added, key)
		case err != nil && ctx.Err() == nil && damaged(err):
			done.Failed = append(done.Failed, fmt.Sprintf("entry %.80q: %v", key, err))
		case err != nil:
			return done, fmt.Errorf("entry %.80q: %w", key, err)
		}
	}
	return done, nil
}

// damaged reports whether an error is the entry's fault.
func damaged(err error) bool {
	var fromEngine *engine.InputError
	var fromCorpus *corpus.InputError
	return errors.As(err, &fromEngine) || errors.As(err, &fromCorpus)
}

// chosen returns the keys that begin with one of the prefixes; without prefixes all.
func chosen(keys, prefixes []string) ([]string, error) {
	if len(prefixes) == 0 {
		return keys, nil
	}
	var list []string
	for _, prefix := range prefixes {
		var found []string
		for _, key := range keys {
			if strings.HasPrefix(key, prefix) {
				found = append(found, key)
			}
		}
		switch {
		case len(found) == 0 || prefix == "":
			return nil, &corpus.InputError{Err: fmt.Errorf("the engine has no entry %.80q", prefix)}
		case len(found) > 1:
			return nil, &corpus.InputError{Err: fmt.Errorf("%.80q is not clear: %d entries begin so", prefix, len(found))}
		}
		list = append(list, found[0])
	}
	return list, nil
}

// names are the entries of a corpus, with those whose files were dropped if asked for.
func names(ctx context.Context, c *corpus.Corpus, dropped bool) (map[string]bool, error) {
	list, err := c.List(ctx, corpus.Filter{Dropped: dropped})
	if err != nil {
		return nil, err
	}
	have := make(map[string]bool, len(list))
	for i := range list {
		have[list[i].ID] = true
	}
	return have, nil
}

type puller struct {
	engine  *engine.Engine
	corpus  *corpus.Corpus
	options *PullOptions
	from    string
}

// recordsAtOnce is how many records are fetched at a time.
const recordsAtOnce = 16

// fetchedRecord is a record, or the reason why there is none.
type fetchedRecord struct {
	record *entryRecord
	err    error
}

// records fetches the records of entries. The error of a damaged one is in its place.
func (p *puller) records(ctx context.Context, keys []string) ([]fetchedRecord, error) {
	list := make([]fetchedRecord, len(keys))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(recordsAtOnce)
	for i, key := range keys {
		group.Go(func() error {
			text, err := p.engine.Record(ctx, entriesKind, key)
			if err == nil {
				list[i].record, err = decodeRecord(text)
			}
			if err != nil && !damaged(err) {
				return fmt.Errorf("entry %.80q: %w", key, err)
			}
			list[i].err = err
			return nil
		})
	}
	return list, group.Wait()
}

// entry fetches an entry, unless the filter leaves it out.
func (p *puller) entry(ctx context.Context, id string, fetched fetchedRecord) (added bool, err error) {
	record := fetched.record
	if fetched.err != nil {
		return false, fetched.err
	}
	if !record.takes(&p.options.Filter) {
		return false, nil
	}
	scratch, discard, err := p.corpus.Scratch()
	if err != nil {
		return false, err
	}
	defer discard()
	description, err := p.description(ctx, record, scratch)
	if err != nil {
		return false, fmt.Errorf("its description: %w", err)
	}
	size, err := corpus.CheckDescription(description, id)
	if err != nil {
		return false, err
	}
	limits := engine.Limits{Bytes: p.options.Bytes}
	if size > 0 && (limits.Bytes <= 0 || size < limits.Bytes) {
		limits.Bytes = size // the files are those that it lists, or it is refused
	}
	files := filepath.Join(scratch, "files")
	if err := p.engine.GetTree(ctx, record.Files, files, limits); err != nil {
		return false, err
	}
	a, err := p.corpus.Unpack(ctx, description, files, corpus.UnpackOptions{ID: id, From: p.from, Bytes: p.options.Bytes})
	return err == nil && !a.Existed, err
}

func (p *puller) description(ctx context.Context, record *entryRecord, scratch string) ([]byte, error) {
	dir := filepath.Join(scratch, "description")
	if err := p.engine.GetTree(ctx, record.Description, dir, engine.Limits{Files: 1, Bytes: mostDescription}); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, descriptionName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, &corpus.InputError{Err: err}
	}
	return text, err
}
