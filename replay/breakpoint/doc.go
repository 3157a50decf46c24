// Package breakpoint stops threads of a replay at places that no event names: those of signals
// between two events, of preemptions, of Moments, and of each thread at the end. It uses debug
// registers, and probes: code in the process that compares the registers with those of the place.
package breakpoint
