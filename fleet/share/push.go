package share

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"diagnose/corpus"
	"diagnose/fleet/engine"
)

// descriptionName is the file of the tree that a description is stored as.
const descriptionName = "entry.json"

// Pushed is the result of a push.
type Pushed struct {
	// ID names the entry. Existed says that the engine had it with all that was pushed.
	ID      string `json:"id"`
	Existed bool   `json:"existed"`
	// Sent is the number of bytes of files that were sent, compressed.
	Sent int64 `json:"sent_bytes"`
}

// Push stores a failure in an engine. Others see it when all of it is there. If the engine has it
// with more diagnoses, that stays. An interrupted push resumes when it is repeated.
func Push(ctx context.Context, e *engine.Engine, p *corpus.Parcel, note func(engine.Progress)) (Pushed, error) {
	done := Pushed{ID: p.Entry.ID}
	if err := push(ctx, e, p, &done, note); err != nil {
		return done, fmt.Errorf("entry %s: %w", p.Entry.ID, err)
	}
	return done, nil
}

func push(ctx context.Context, e *engine.Engine, p *corpus.Parcel, done *Pushed, note func(engine.Progress)) error {
	record := entryRecord{Version: recordVersion, Diagnoses: p.Diagnoses, Kind: p.Entry.Kind, Program: p.Entry.Program, Outcome: p.Entry.Outcome,
		FailedAt: p.Entry.FailedAt, Labels: p.Entry.Labels, PushedAt: time.Now().UTC().Truncate(time.Second)}
	record.Host, _ = os.Hostname() // for people; without one it is not told
	var err error
	record.Files, err = e.PutFiles(ctx, p.Dir, p.Files, func(g engine.Progress) {
		done.Sent = g.Sent
		if note != nil {
			note(g)
		}
	})
	if err != nil {
		return err
	}
	if record.Description, err = putDescription(ctx, e, p.Description); err != nil {
		return err
	}
	old, err := storedRecord(ctx, e, p.Entry.ID)
	if err != nil {
		return err
	}
	if old != nil && old.Files == record.Files && (old.Description == record.Description || old.Diagnoses > record.Diagnoses) {
		done.Existed = true
		return nil
	}
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return e.PutRecord(ctx, entriesKind, p.Entry.ID, text)
}

// storedRecord returns the record that an engine has of an entry, or nil if it has none that can
// be read.
func storedRecord(ctx context.Context, e *engine.Engine, id string) (*entryRecord, error) {
	text, err := e.Record(ctx, entriesKind, id)
	var input *engine.InputError
	if errors.As(err, &input) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := decodeRecord(text)
	if err != nil {
		return nil, nil // this push replaces it
	}
	return r, nil
}

func putDescription(ctx context.Context, e *engine.Engine, text []byte) (string, error) {
	dir, err := os.MkdirTemp("", "diagnose-push-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, descriptionName), text, 0o600); err != nil {
		return "", err
	}
	return e.PutTree(ctx, dir, nil)
}
