// Package dapserver opens a recording in an editor: it speaks the Debug Adapter Protocol and drives a gdb that is connected
// to the recording.
package dapserver
