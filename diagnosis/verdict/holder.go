package verdict

import (
	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
)

// misled names the store outside of what its code means that put a pointer there by which the failing instruction came to the bad value. It
// reports false where there is none.
func (t *tracedCauses) misled() bool {
	if f := &t.in.Case.Failure; f.Fault == nil && f.Kind != evidence.DivisionByZero || !t.recorded() || t.exact.trace == nil || !t.exact.failed() {
		return false
	}
	way := provenance.BrokenHolder(t.exact.trace, t.exact.program, t.exact.last())
	if way == nil {
		return false
	}
	cause := t.exact.cause(&victim{kind: evidence.CauseBadValue, name: "the pointer that led there"}, way)
	if cause == nil {
		return false
	}
	cause.Object = t.exact.objectOf(way)
	t.out.Causes = append(t.out.Causes, *cause)
	return true
}
