// Package reports turns a Case, or the summary of a Heap, into what a person or
// a program reads: text for a terminal, Markdown for a ticket, JSON for tools.
//
// Text and Markdown come from one document of blocks (document.go), so that
// they cannot say different things. Every string that came from the target is
// cleaned of control characters before it is laid out, and secrets are
// replaced before any format sees them (redact.go, reports/secrets).
package reports
