package driver

import (
	"diagnose/evidence"
)

// refused takes from the recording which system calls the recorder refused.
func (a *analysis) refused() {
	list := a.failing[0].Manifest.Refused
	for i := range list {
		r := &list[i]
		why := r.Why()
		if r.Filter() {
			why = "the recorder's own calls would be filtered"
		}
		a.result.Refused = append(a.result.Refused, evidence.RefusedCall{Call: r.Call, Error: evidence.ErrorName(r.Error), Why: why, Moment: r.Moment()})
	}
}
