package severity

import (
	"cmp"
	"slices"

	"diagnose/evidence"
)

// Input is what a severity follows from.
type Input struct {
	// Case has the failure, the findings and the causes.
	Case *evidence.Case
	// Code is the memory from the failing instruction on, as much as could be read. The instructions
	// in it are decoded, never executed.
	Code []byte
}

// Of returns the severity of a case; nil if the process did not end by a signal of its own, and no
// finding and no cause shows damage.
func Of(in Input) *evidence.Severity {
	c := in.Case
	s := &evidence.Severity{}
	if r, ok := atFailure(&c.Failure, in.Code); ok {
		s.AtFailure = r.Class
		s.Reasons = append(s.Reasons, r)
	}
	for i := range c.Findings {
		if r, ok := byFinding(&c.Findings[i], &c.Failure); ok {
			r.Number = i + 1
			s.Reasons = append(s.Reasons, r)
		}
	}
	if c.Diagnosis != nil {
		s.Reasons = append(s.Reasons, byCauses(c.Diagnosis.Causes)...)
		if r, ok := byInput(c.Diagnosis.Causes, s.AtFailure); ok {
			s.Controlled = true
			s.Reasons = append(s.Reasons, r)
		}
	}
	if len(s.Reasons) == 0 {
		return nil
	}
	slices.SortStableFunc(s.Reasons, func(a, b evidence.SeverityReason) int { return cmp.Compare(b.Estimate.Rank(), a.Estimate.Rank()) })
	first := &s.Reasons[0]
	s.Class, s.Estimate, s.Proof = first.Class, first.Estimate, first.Proof
	return s
}
