// Package eventlog reads and writes the events of a recorded process: their binary form in a
// log, their text form, their order, and the image that a replayed process reads. It also has
// what other packages say about a place between two events, and the errors of a recording's
// files.
//
// docs/recording.md describes the format, agent/src/record.h has its structs.
package eventlog
