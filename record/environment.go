package record

import (
	"path/filepath"
	"strings"
)

const (
	// Variable is set for programs that are recorded or replayed; the library
	// does nothing but guard the heap without it.
	Variable = "DIAGNOSE_RECORD"

	preloadVariable  = "LD_PRELOAD"
	tunablesVariable = "GLIBC_TUNABLES"
	// noRseq: glibc reads the processor's number from memory that the kernel
	// writes at any time, which no recording could bring back.
	noRseq = "glibc.pthread.rseq=0"
)

// Environment returns environ for a program that is to be recorded with a
// library. A replay has the same.
func Environment(environ []string, library string) []string {
	var kept []string
	preloads, tunables := []string{library}, noRseq
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		switch name {
		case Variable:
		case preloadVariable:
			for _, other := range strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ':' }) {
				// A recording inside of another, and the library that only guards.
				if base := filepath.Base(other); base != filepath.Base(library) && base != "libdiagnose.so" {
					preloads = append(preloads, other)
				}
			}
		case tunablesVariable:
			tunables = joinTunables(value)
		default:
			kept = append(kept, entry)
		}
	}
	return append(kept, preloadVariable+"="+strings.Join(preloads, ":"), Variable+"=1", tunablesVariable+"="+tunables)
}

func joinTunables(value string) string {
	list := []string{}
	for _, x := range strings.Split(value, ":") {
		if x != "" && !strings.HasPrefix(x, "glibc.pthread.rseq=") {
			list = append(list, x)
		}
	}
	return strings.Join(append(list, noRseq), ":")
}
