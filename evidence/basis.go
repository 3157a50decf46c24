package evidence

// Basis is what a cause rests on: a rule that an access was seen to break, or else where a bad value began.
type Basis string

// The bases that are broken rules.
const (
	// BasisBounds: an access outside of the object or the variable that the code means.
	BasisBounds Basis = "outside-object"
	// BasisLifetime: a use of memory whose life had ended.
	BasisLifetime Basis = "ended-life"
	// BasisUndefined: a use of bytes that were never given a value.
	BasisUndefined Basis = "undefined-bytes"
	// BasisOverwritten: a store replaced a value by another thing.
	BasisOverwritten Basis = "overwritten"
	// BasisType: an argument or an object of another type than the code expects.
	BasisType Basis = "other-type"
	// BasisOrder: an order of accesses, of locks, or of a wait and its signal.
	BasisOrder Basis = "order"
)

// The bases of bad values by which no rule was seen to be broken: where the value began.
const (
	// BasisConstant: the code has it in itself.
	BasisConstant Basis = "constant"
	// BasisInput: it came from outside of the program.
	BasisInput Basis = "input"
	// BasisResult: a call returned it.
	BasisResult Basis = "result"
	// BasisCount: a loop or a counter counted to it.
	BasisCount Basis = "count"
	// BasisStore: a store made it, of values that are not known.
	BasisStore Basis = "store"
	// BasisInitial: it was there from the beginning.
	BasisInitial Basis = "initial"
	// BasisBranch: a branch on it went another way than in passing runs.
	BasisBranch Basis = "branch"
)

// Broken reports whether it is a rule that was seen to be broken.
func (b Basis) Broken() bool {
	switch b {
	case BasisBounds, BasisLifetime, BasisUndefined, BasisOverwritten, BasisType, BasisOrder:
		return true
	}
	return false
}

// BasisOf is the basis of the kinds of cause that have but one; empty: it is of a value, and depends.
func BasisOf(kind CauseKind) Basis {
	switch kind {
	case CauseHeapOverflow, CauseHeapUnderflow, CauseStackSmashing:
		return BasisBounds
	case CauseUseAfterFree, CauseDoubleFree:
		return BasisLifetime
	case CauseUninitialised:
		return BasisUndefined
	case CauseOverwritten:
		return BasisOverwritten
	case CauseAtomicity, CauseOrder, CauseSignalHandler, CauseDeadlock, CauseMissingWakeup:
		return BasisOrder
	}
	return ""
}
