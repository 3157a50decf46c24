package reports

import "diagnose/evidence"

// headline is the first line of a report: why the program failed, if that is proved, and how it
// failed.
type headline struct {
	// cause is nil if no cause is proved. The failure is then the headline.
	cause   *evidence.Cause
	failure *evidence.Failure
}

// headlineOf takes the first cause only: the others are less likely, or follow from it.
func headlineOf(c *evidence.Case) headline {
	h := headline{failure: &c.Failure}
	if d := c.Diagnosis; d != nil && len(d.Causes) > 0 && d.Causes[0].Proof == evidence.Proved {
		h.cause = &d.Causes[0]
	}
	return h
}

// text is the headline as one line of plain text.
func (h headline) text() string {
	if h.cause != nil {
		return Clean(h.cause.Summary)
	}
	return Clean(h.failure.Sentence)
}

// lead is the headline with its proof level. A failure's level is in the summary.
func (h headline) lead() line {
	if h.cause != nil {
		return say(alarm, h.cause.Summary).and(faint, proofMark(h.cause.Proof))
	}
	return say(alarm, h.failure.Sentence)
}

// symptom says how the program failed if the headline says why; nil otherwise.
func (h headline) symptom() []block {
	if h.cause == nil {
		return nil
	}
	return []block{prose{say(plain, "The failure: ").and(strong, h.failure.Sentence)}}
}

func (h headline) document() Headline {
	if h.cause != nil {
		return Headline{Text: h.cause.Summary, Proof: h.cause.Proof, OfCause: true}
	}
	return Headline{Text: h.failure.Sentence, Proof: h.failure.Proof}
}
