package score

import "diagnose/evidence"

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
