// Package record defines the recording of a run: its directory on disk, the format of every
// file in it, and the launcher that makes one.
//
// A recording is a directory with a manifest (JSON), the log of events, the data of mapped
// files, the patch table and the core of the process's end. agent/src/record.h describes the
// contents of the log. Nothing in a directory is trusted: it may be cut off anywhere, and it
// may come from a stranger.
// trusted: it may have been cut off anywhere, and it may come from a stranger.
package record
