package debug

import "diagnose/evidence"

// Cause is a cause or a lead of the diagnosis of a recording, with its steps.
type Cause struct {
	Summary string
	Proof   evidence.Proof
	Steps   []CauseStep
}

// CauseStep is a step of a Cause. Moment has no thread if it is not known, and Site is nil if no place is.
type CauseStep struct {
	Text   string
	Proof  evidence.Proof
	Moment evidence.Moment
	Site   *evidence.Site
}
