// Package record defines the recording of a run: its directory on disk, the files in it, and
// how they are read. Package eventlog has the format of the log, package recorder makes
// recordings.
//
// A recording is a directory with a manifest (JSON), the log of events, the data of mapped
// files, the patch table and the core of the process's end. agent/src/record.h describes the
// contents of the log. Nothing in a directory is trusted: it may be cut off anywhere, and it
// may come from a stranger.
package record
