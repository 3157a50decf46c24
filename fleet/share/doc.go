// Package share carries failures between corpora and an engine: their files by content, with
// their labels and diagnoses.
package share
