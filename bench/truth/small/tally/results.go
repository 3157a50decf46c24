package tally

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strconv"

	"diagnose/bench/truth/small/program"
	"diagnose/bench/truth/small/trial"
	"diagnose/bench/truth/store"
)

// Result is the verdict on the program of a seed.
type Result struct {
	Seed     uint64           `json:"seed"`
	Kind     string           `json:"kind"`
	Ending   string           `json:"ending"`
	Language program.Language `json:"language"`
	Compiler string           `json:"compiler"`
	Level    string           `json:"level"`
	// Concurrent says that the bug is one of threads or signals.
	Concurrent bool `json:"concurrent,omitempty"`
	// HoldOut says that the seed is of the hold-out.
	HoldOut bool `json:"hold_out,omitempty"`
	// Digest is that of the program and its answers: a change of the generator makes others.
	Digest string     `json:"digest"`
	Code   store.Code `json:"code"`
	trial.Verdict
}

// Of is the result of a program.
func Of(p *program.Program, v *trial.Verdict, code store.Code) *Result {
	return &Result{Seed: p.Seed, Kind: p.Kind, Ending: p.Ending, Language: p.Language, Compiler: p.Compiler, Level: p.Level,
		Concurrent: p.Concurrent(), HoldOut: program.HoldOut(p.Seed), Digest: Digest(p), Code: code, Verdict: *v}
}

// Digest is a hash of what a seed makes, and of the answers.
func Digest(p *program.Program) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %v %v %v %v%s\n%s\n%s", p.Compiler, p.Level, p.Flags, p.Root, p.Seen, p.Failing, p.Variable, p.Source, p.Twin))
	return fmt.Sprintf("%x", sum[:8])
}

// Store is a directory with results.
type Store struct{ Dir string }

// path is the file of a result. Nothing in it tells which seed of the hold-out it is of.
func (s *Store) path(seed uint64) string {
	if program.HoldOut(seed) {
		sum := sha256.Sum256(fmt.Appendf(nil, "result %d", seed))
		return filepath.Join(s.Dir, "hold-out", fmt.Sprintf("%x.json", sum[:12]))
	}
	return filepath.Join(s.Dir, "results", strconv.FormatUint(seed, 10)+".json")
}

// Save keeps a result, of the hold-out only what totals need, and the report unless it is of the hold-out.
func (s *Store) Save(r *Result) error {
	kept := *r
	if r.HoldOut {
		kept = Result{Concurrent: r.Concurrent, HoldOut: true, Digest: r.Digest, Code: r.Code}
		kept.Score, kept.FalseAlarm = r.Score, r.FalseAlarm
	}
	if r.Report != nil && !r.HoldOut {
		if err := store.Write(filepath.Join(s.Dir, "reports", strconv.FormatUint(r.Seed, 10)+".json"), r.Report); err != nil {
			return err
		}
	}
	return store.Save(s.path(r.Seed), kept)
}

// Load is the last result of a seed; nil: there is none.
func (s *Store) Load(seed uint64) (*Result, error) {
	var r Result
	if known, err := store.Load(s.path(seed), &r); !known || err != nil {
		return nil, err
	}
	return &r, nil
}
