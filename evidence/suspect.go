package evidence

// SuspectKind says how the scan found a memory word.
type SuspectKind string

const (
	// SuspectGlobal is a variable with static storage.
	SuspectGlobal SuspectKind = "global"
	// SuspectHeap is a heap word reached through a global.
	SuspectHeap SuspectKind = "heap"
	// SuspectCell is the cell that the failing operand's pointer was loaded
	// from, wherever it is.
	SuspectCell SuspectKind = "bad-pointer-cell"
	// SuspectTLS is a thread-local variable of the failing thread.
	SuspectTLS SuspectKind = "thread-local"
)

// Suspect is a memory word that the failing code touches and that may have
// been given its bad value elsewhere.
type Suspect struct {
	Kind SuspectKind `json:"kind"`
	// Name is in the program's terms: "cfg.workers[3].state", or
	// "symbol+0x10" without debug information. Type is as the program writes
	// it, Size in bytes.
	Name    string `json:"name"`
	Type    string `json:"type,omitempty"`
	Address Addr   `json:"address"`
	Size    int    `json:"size"`
	// Value is what the word held at the end.
	Value  Value      `json:"value"`
	Access AccessKind `json:"access"`
	// Lines are where the scanned code touches it, in code order.
	Lines []SuspectUse `json:"lines"`
	// Rank orders the suspects; 0 is the strongest.
	Rank  int   `json:"rank"`
	Proof Proof `json:"proof"`
}

// SuspectUse is one instruction that touches a suspect.
type SuspectUse struct {
	Access AccessKind `json:"access"`
	Site   Site       `json:"site"`
}

// Scan is the static scan's result and its extent.
type Scan struct {
	// Functions are the names of the scanned functions, the failing one first.
	Functions []string `json:"functions"`
	// Instructions counts the instructions decoded, MemoryOperands the
	// operands seen and Unresolved those that may be shared memory which the
	// scan missed: neither the code nor the stopped process tells which. The
	// function's own stack, a suspect, and unmapped memory are none.
	Instructions   int       `json:"instructions"`
	MemoryOperands int       `json:"memory_operands"`
	Unresolved     int       `json:"unresolved"`
	Suspects       []Suspect `json:"suspects"`
}
