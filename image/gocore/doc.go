// Package gocore reads what is particular to a core of a Go program: its
// goroutines and the panic or fatal error that ended it.
//
// It stands on delve's pkg/proc/core, kept behind one function that turns its
// panics into errors. Delve is used for nothing else of a core: of C threads
// and their memory it is not to be trusted.
package gocore
