package record

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
}
