// Package gocore reads the Go-specific parts of a Go program's core: its
// goroutines and the panic or fatal error that ended it.
//
// It uses delve's pkg/proc/core, through one function that turns its panics
// into errors. Delve is used for nothing else of a core, because it is not
// reliable for C threads and their memory.
package gocore
