package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// MostRecord is the maximum size of a record, in bytes.
const MostRecord = 64 << 10

// mostKeys is the maximum number of records of a kind that are listed.
const mostKeys = 1 << 20

// PutRecord stores a small text under a key of letters, digits and hyphens. It replaces an
// earlier one.
func (e *Engine) PutRecord(ctx context.Context, kind, key string, text []byte) error {
	if len(text) > MostRecord {
		return fmt.Errorf("engine: %w", inputf("the record %.80s has %d bytes, and %d are allowed", key, len(text), MostRecord))
	}
	b, err := e.bucket(ctx, kind, "Records of "+kind, true)
	if err == nil {
		_, err = run(ctx, e, func(ctx context.Context) (uint64, error) { return b.Put(ctx, key, text) })
	}
	if err != nil {
		return fmt.Errorf("engine: the record %.80s: %w", key, err)
	}
	return nil
}

// Record returns the text of a key. An *InputError says that there is none.
func (e *Engine) Record(ctx context.Context, kind, key string) ([]byte, error) {
	b, err := e.bucket(ctx, kind, "", false)
	var text []byte
	if err == nil {
		text, err = e.get(ctx, b, key)
	}
	if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrInvalidKey) {
		err = inputf("the engine does not have it")
	}
	if err == nil && len(text) > MostRecord {
		err = inputf("it has %d bytes, and %d are allowed", len(text), MostRecord)
	}
	if err != nil {
		return nil, fmt.Errorf("engine: the record %.80q: %w", key, err)
	}
	return text, nil
}

// RecordKeys returns the keys of a kind, in the order in which they were last stored.
func (e *Engine) RecordKeys(ctx context.Context, kind string) ([]string, error) {
	b, err := e.bucket(ctx, kind, "", false)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, nil
	}
	var keys []string
	if err == nil {
		keys, err = run(ctx, e, func(ctx context.Context) ([]string, error) { return listKeys(ctx, b) })
	}
	if err != nil {
		return nil, fmt.Errorf("engine: the records of %s: %w", kind, err)
	}
	return keys, nil
}

// listKeys reads all keys. KeyValue.ListKeys does not tell an interrupted list from a whole one.
func listKeys(ctx context.Context, b *bucket) ([]string, error) {
	w, err := b.WatchAll(ctx, jetstream.MetaOnly(), jetstream.IgnoreDeletes())
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	var keys []string
	for {
		select {
		case entry, open := <-w.Updates():
			switch {
			case !open:
				return nil, context.DeadlineExceeded
			case entry == nil: // all of them were told
				return keys, nil
			case len(keys) == mostKeys:
				return nil, inputf("there are more than %d", mostKeys)
			}
			keys = append(keys, entry.Key())
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
