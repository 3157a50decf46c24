// Package racereport reads the reports of Go's race detector: the text that a program built with -race writes to standard error, or to
// the files of GORACE's log_path.
package racereport
