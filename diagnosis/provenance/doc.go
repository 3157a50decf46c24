// Package provenance follows a bad value through a trace of a replay, from the instruction that failed to where
// the value began, or to the first access on the way that broke a rule: of a freed object, or outside of the object
// that its pointer was derived from.
//
// It computes, and does not guess from code: a copy is followed byte by byte; of an addition of a pointer and an
// offset the pointer's object says which of the two is wrong; a count that a loop makes is followed to the
// bound that the loop compares it with. Where the trace does not decide, the way ends there and says so.
package provenance
