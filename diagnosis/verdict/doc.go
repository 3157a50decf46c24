// Package verdict says what recordings tell of a failure's cause.
//
// A memory error goes back from what was damaged, or from the bad value, to the
// instruction that stored it, hop by hop. A concurrency failure is the order of
// accesses that failing runs have and passing ones have not. Either is a
// suspicion until an experiment on the replay has switched the failure on and
// off; a Cause says how far it came.
package verdict
