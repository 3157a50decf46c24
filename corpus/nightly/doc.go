// Package nightly diagnoses the new failures of a corpus: each in its own process, with budgets
// of time and memory, so that no recording can stop the night.
//
// A night keeps its state only in the corpus. Each result is one transaction, so the results of
// a night that is killed at any point remain, and another night continues. Several may run at
// once, since each claims a failure before it begins. A summary follows from the corpus alone.
package nightly
