// Package gocore reads the Go-specific parts of a Go program's process: its
// goroutines and the panic or fatal error that ended it.
//
// Of a core with DWARF it uses delve's pkg/proc/core, through one function that
// turns its panics into errors. Delve is used for nothing else of a core,
// because it is not reliable for C threads and their memory. Without DWARF, and
// in a live process, the runtime's structures are found and read here.
package gocore
