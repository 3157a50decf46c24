// Package store keeps mutants and results between runs, and the list of the mutants that
// fail.
package store
