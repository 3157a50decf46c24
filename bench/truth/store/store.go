package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"diagnose/bench/truth/mutant"
	"diagnose/bench/truth/score"
	"diagnose/bench/truth/ways"
)

// Store is a directory with mutants and results.
type Store struct{ Dir string }

// Result is the judgement on one mutant in one way.
type Result struct {
	mutant.ID
	Way      ways.Way `json:"way"`
	Operator string   `json:"operator,omitempty"`
	Class    string   `json:"class,omitempty"`
	Level    string   `json:"level,omitempty"`
	score.Score
	// Headline is that of the report; nil: there is no report.
	Headline *score.Headline `json:"headline,omitempty"`
	// Compared says that the report has branches at which the run left the way of passing runs, Parted that one of them is at the bug.
	Compared bool `json:"compared,omitempty"`
	Parted   bool `json:"parted,omitempty"`
	// Twin says that the original was reported.
	Twin bool `json:"twin,omitempty"`
	// Seconds is how long the diagnosis took.
	Seconds float64 `json:"seconds"`
	Code    Code    `json:"code"`
}

// Mutant is the directory of a mutant.
func (s *Store) Mutant(id mutant.ID) string {
	return filepath.Join(s.Dir, "mutants", id.Package, strconv.FormatUint(id.Seed, 10))
}

// tried is the file of a seed: a mutant, or the reason why it was dropped.
type tried struct {
	Version string       `json:"version"`
	Digest  string       `json:"digest"`
	Kept    *mutant.Kept `json:"kept,omitempty"`
	Drop    mutant.Drop  `json:"drop,omitempty"`
}

// SaveMutant keeps a mutant, or the reason why it was dropped.
func (s *Store) SaveMutant(id mutant.ID, digest string, k *mutant.Kept, d mutant.Drop) error {
	return Save(filepath.Join(s.Mutant(id), "mutant.json"), tried{id.Version, digest, k, d})
}

// LoadMutant reads the file of a seed; known is false if there is none, or a bug with
// another digest.
func (s *Store) LoadMutant(id mutant.ID, digest string) (k *mutant.Kept, known bool, err error) {
	var t tried
	known, err = Load(filepath.Join(s.Mutant(id), "mutant.json"), &t)
	if !known || err != nil || t.Digest != digest || t.Version != id.Version {
		return nil, false, err
	}
	if t.Kept != nil {
		if _, err := os.Stat(t.Kept.Program); err != nil {
			return nil, false, nil // it was removed, and is made again
		}
	}
	return t.Kept, true, nil
}

// result is the path of a result. Nothing in it tells which mutant of the hold-out it is of.
func (s *Store) result(id mutant.ID, way ways.Way) string {
	if id.HoldOut() {
		sum := sha256.Sum256([]byte(id.String()))
		return filepath.Join(s.Dir, "results", "hold-out", fmt.Sprintf("%x-%s.json", sum[:12], way))
	}
	return filepath.Join(s.Dir, "results", id.Package, fmt.Sprintf("%d-%s.json", id.Seed, way))
}

// SaveResult keeps a result. Of the hold-out only what totals need is kept.
func (s *Store) SaveResult(r *Result) error {
	kept := *r
	if r.HoldOut() {
		kept.ID, kept.Operator, kept.Headline = mutant.ID{}, "", nil
	}
	return Save(s.result(r.ID, r.Way), kept)
}

// LoadResult returns the last result of a mutant in one way; nil: there is none.
func (s *Store) LoadResult(id mutant.ID, way ways.Way) (*Result, error) {
	var r Result
	if known, err := Load(s.result(id, way), &r); !known || err != nil {
		return nil, err
	}
	r.ID = id
	return &r, nil
}

// DropResults removes the results of a mutant: other answers are accepted now.
func (s *Store) DropResults(id mutant.ID) error {
	for _, way := range ways.All {
		if err := os.Remove(s.result(id, way)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("store: %w", err)
		}
	}
	return nil
}

// SaveReport keeps a report for people to read, unless it is of the hold-out.
func (s *Store) SaveReport(id mutant.ID, way ways.Way, text []byte) error {
	if id.HoldOut() {
		return nil
	}
	return Write(filepath.Join(s.Dir, "reports", id.Package, fmt.Sprintf("%d-%s.json", id.Seed, way)), text)
}
