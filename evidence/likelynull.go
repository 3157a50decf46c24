package evidence

import "fmt"

// LikelyNull is a pointer that is null, by the failing statement of the source and the types, where the instruction does not tell which
// one is: the compiler knew that it is null there, and the instruction has the address of the member itself, or the pointer
// came into its register in several ways.
type LikelyNull struct {
	// Pointer is the expression that is null ("n"), of Type; Accessed is the part that the code accesses through it ("n->key").
	Pointer  string `json:"pointer"`
	Type     string `json:"type"`
	Accessed string `json:"accessed"`
	// Offset is that of the access from Pointer, in bytes.
	Offset uint64 `json:"offset"`
	// Null: the pointer has a value there, and is null; otherwise its value is not kept.
	Null  bool  `json:"null,omitempty"`
	Proof Proof `json:"proof"`
}

func (l *LikelyNull) check() error {
	if l.Pointer == "" || l.Accessed == "" || l.Proof != Inferred {
		return fmt.Errorf("a null pointer %q, to %q, with the proof level %q", l.Pointer, l.Accessed, l.Proof)
	}
	return nil
}
