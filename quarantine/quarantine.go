// Package quarantine judges what was written into freed memory: a pure
// function of a memory image and the agent's heap in it.
//
// The agent fills the first bytes of a freed object with a word that names it,
// and the fill stands until the object is handed out again. Bytes that differ
// were written after the free.
package quarantine

import (
	"diagnose/agent"
	"diagnose/evidence"
)

// Options of Check. The zero value is useful.
type Options struct {
	// Workers check at the same time; 0 is one a processor.
	Workers int
	// Limit bounds the damages that are returned; 0 is 100.
	Limit int
}

// Damage is a freed object whose fill was overwritten.
type Damage struct {
	// Object is the freed object, with Freed if that is still known.
	Object agent.Object
	// Damage has offsets relative to Object.
	Damage evidence.Damage
	// Before is the object in the slot before, when the damage begins with the
	// first byte: it may have overflowed instead. nil when there is none.
	Before *agent.Object
}

// Result is what Check found.
type Result struct {
	// Damages in address order: those with the lowest addresses, and how many
	// Further ones there are.
	Damages []Damage
	Further int
	// Checked counts the objects whose fill was compared.
	Checked uint64
	// Limits say what could not be read.
	Limits []evidence.Limit
}

// Check compares the fill of all freed objects that are still filled.
func Check(h *agent.Heap, options Options) (*Result, error) {
	return &Result{}, nil
}
