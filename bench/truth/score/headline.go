package score

import (
	"slices"

	"diagnose/bench/truth/mutant"
	"diagnose/evidence"
)

// Headline is what the first sentence of a report rests on.
type Headline struct {
	// Failure is the kind of failure, Kind that of the first cause; empty: the report names no cause.
	Failure evidence.FailureKind `json:"failure"`
	Kind    evidence.CauseKind   `json:"kind,omitempty"`
	// Basis and Proof are those of the first cause.
	Basis evidence.Basis `json:"basis,omitempty"`
	Proof evidence.Proof `json:"proof,omitempty"`
	// Experiment says that an experiment on the first cause came out as expected, and decided.
	Experiment bool `json:"experiment,omitempty"`
}

// HeadlineOf is the headline of a report.
func HeadlineOf(c *evidence.Case) *Headline {
	h := &Headline{Failure: c.Failure.Kind}
	if d := c.Diagnosis; d != nil && len(d.Causes) > 0 {
		first := &d.Causes[0]
		h.Kind, h.Basis, h.Proof, h.Experiment = first.Kind, first.Basis, first.Proof, first.Supported()
	}
	return h
}

// Parted reports whether a report names branches at which the run left the way of passing runs, and whether one of them, or where a value
// came from that it compared, is at the bug or the first violation.
func Parted(c *evidence.Case, answer *mutant.Answer) (compared, right bool) {
	if c.Diagnosis == nil {
		return false, false
	}
	list := sites(c.Diagnosis.Divergences)
	return len(list) > 0, slices.ContainsFunc(list, target{answer}.right)
}
