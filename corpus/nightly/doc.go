// Package nightly diagnoses what came into a corpus: each failure in a process of its
// own, with budgets of time and memory, so that no recording can stop the night.
//
// A night keeps nothing but what the corpus has. Each result is one transaction, so a
// night that is killed at any point has done what it had done, and another one goes
// on; several may run at once, for each claims a failure before it begins. What a
// summary tells follows from the corpus alone.
package nightly
