// Package evidence is the vocabulary that every stage of diagnose shares:
// addresses, sites, stacks, values, suspects, findings, and the Case that
// gathers them. It holds small value types, does no input or output, and
// imports nothing of this module.
//
// A Case is what the stages fill and the reports print. Every statement in it
// that is more than a copy of read data carries a Proof level, and Check
// refuses a Case whose statements contradict each other.
package evidence
