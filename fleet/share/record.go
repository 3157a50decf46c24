package share

import (
	"encoding/json"
	"fmt"
	"time"

	"diagnose/corpus"
	"diagnose/fleet/engine"
)

// entriesKind is the kind of the records that tell which failures an engine has, by entry.
const entriesKind = "entries"

// recordVersion is the version of the form that is written, and the newest that is read.
const recordVersion = 1

// entryRecord tells where an engine has a failure. It is written last, so what it names is there.
// The description decides what the entry is; the rest is for choosing.
type entryRecord struct {
	Version int `json:"version"`
	// Files and Description are references of trees.
	Files       string `json:"files"`
	Description string `json:"description"`
	// Diagnoses counts those in the description.
	Diagnoses int               `json:"diagnoses"`
	Kind      string            `json:"kind"`
	Program   string            `json:"program,omitempty"`
	Outcome   string            `json:"outcome"`
	FailedAt  time.Time         `json:"failed_at"`
	Labels    map[string]string `json:"labels,omitempty"`
	// Host is the host that pushed it, PushedAt when.
	Host     string    `json:"host,omitempty"`
	PushedAt time.Time `json:"pushed_at"`
}

// decodeRecord reads a record, which may be hostile.
func decodeRecord(text []byte) (*entryRecord, error) {
	var r entryRecord
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, &corpus.InputError{Err: err}
	}
	if r.Version < 1 || r.Version > recordVersion {
		return nil, &corpus.InputError{Err: fmt.Errorf("it has the form %d, and this diagnose knows %d", r.Version, recordVersion)}
	}
	for _, reference := range []string{r.Files, r.Description} {
		if err := engine.CheckReference(reference); err != nil {
			return nil, err
		}
	}
	return &r, nil
}

// takes reports whether a filter selects the failure that a record tells of.
func (r *entryRecord) takes(f *corpus.Filter) bool {
	e := corpus.Entry{Kind: r.Kind, Program: r.Program, FailedAt: r.FailedAt, Labels: r.Labels}
	return f.Takes(&e)
}
