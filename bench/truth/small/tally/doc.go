// Package tally keeps the verdicts on small programs, and writes the page about them.
package tally
