package record

import "diagnose/evidence"

// Atomics says of which atomic instructions the recording has the order.
type Atomics struct {
	// Objects are the object files that have any, in the order of their addresses when they were loaded.
	Objects []PatchedAtomics `json:"objects,omitempty"`
}

// PatchedAtomics counts the atomic instructions of an object file.
type PatchedAtomics struct {
	Path Text `json:"path"`
	// Patched of the Of instructions are ordered. No jump can take the place of the others.
	Patched int `json:"patched"`
	Of      int `json:"of"`
	// Learned is how many learned accesses are ordered, too. LearnedLeft are the addresses, as in the file, of those
	// whose place no jump can take.
	Learned     int             `json:"learned,omitempty"`
	LearnedLeft []evidence.Addr `json:"learned_left,omitempty"`
}

// Any reports whether any instruction is ordered.
func (p *PatchedAtomics) Any() bool { return p.Patched > 0 || p.Learned > 0 }
