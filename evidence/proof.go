package evidence

// Proof says how a statement is known. The levels are ordered: a later one
// claims less.
type Proof string

const (
	// Proved: an experiment on the replay switched the failure on and off.
	Proved Proof = "proved"
	// Replayed: seen on the replay.
	Replayed Proof = "replayed"
	// FromCore: read from the dead or stopped process.
	FromCore Proof = "from core"
	// Inferred: a rule says so; the report says which.
	Inferred Proof = "inferred"
)

// Valid reports whether p is one of the four levels.
func (p Proof) Valid() bool {
	switch p {
	case Proved, Replayed, FromCore, Inferred:
		return true
	}
	return false
}

// AccessKind says what an instruction does with a memory location.
type AccessKind string

// The kinds of access. ReadWrite is one instruction (or one function, for a
// Suspect) that does both.
const (
	Read      AccessKind = "read"
	Write     AccessKind = "write"
	ReadWrite AccessKind = "read/write"
	Execute   AccessKind = "execute"
)

// Valid reports whether k is one of the four kinds.
func (k AccessKind) Valid() bool {
	switch k {
	case Read, Write, ReadWrite, Execute:
		return true
	}
	return false
}

// Reads reports whether the access reads the memory.
func (k AccessKind) Reads() bool { return k == Read || k == ReadWrite }

// Writes reports whether the access writes the memory.
func (k AccessKind) Writes() bool { return k == Write || k == ReadWrite }

// Union returns the access that does what k and other do; the empty kind is
// neutral. Execute joined with anything else stays Execute.
func (k AccessKind) Union(other AccessKind) AccessKind {
	switch {
	case k == "" || k == other:
		return other
	case other == "":
		return k
	case k == Execute || other == Execute:
		return Execute
	}
	return ReadWrite
}
