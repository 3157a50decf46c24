// Package formula describes a value that is computed from the registers and the memory of a thread at one instruction, so that code
// for it can be made.
package formula

// Kind is what a node computes.
type Kind uint8

// The kinds of nodes. All compute 64 bits.
const (
	// Constant is Value.
	Constant Kind = iota
	// Register is the general register with the DWARF number Value, Vector the low 8 bytes of the vector register xmm Value.
	Register
	Vector
	// Load is the Size bytes of memory at A. They are 1, 2, 4 or 8. Extend is the low Size bytes of A. Both are extended to 64 bits,
	// with the sign if Signed is set.
	Load
	Extend
	Add
	Subtract
	Multiply
	// Divide and Remainder have no value for a divisor of zero. A signed division by -1 has the result of a negation.
	Divide
	Remainder
	And
	Or
	Xor
	// ShiftLeft and ShiftRight have no value if B is 8*Size or more.
	ShiftLeft
	ShiftRight
	// Equal and the kinds up to GreaterEqual are 1 or 0.
	Equal
	NotEqual
	Less
	LessEqual
	Greater
	GreaterEqual
	// Both is whether A and B are not zero, Either whether one is. B is computed only if A does not decide.
	Both
	Either
	// Choose is B if A is not zero, else C. The other one is not computed.
	Choose
	// Bounded is A. It has no value if A, as a signed number, is less than -Value or greater than Value.
	Bounded
)

// Node is a part of a formula. Nothing changes a node, so formulas may share it.
type Node struct {
	Kind    Kind
	Size    int
	Signed  bool
	Value   uint64
	A, B, C *Node
}

// Number returns a constant.
func Number(v uint64) *Node { return &Node{Kind: Constant, Value: v} }

// Of returns a node of a kind that has two operands.
func Of(kind Kind, a, b *Node) *Node { return &Node{Kind: kind, A: a, B: b} }

// Plus returns a node moved by a number of bytes.
func Plus(a *Node, offset int64) *Node {
	switch {
	case offset == 0:
		return a
	case a.Kind == Constant:
		return Number(a.Value + uint64(offset))
	case a.Kind == Add && a.B.Kind == Constant:
		return Plus(a.A, int64(a.B.Value)+offset)
	}
	return Of(Add, a, Number(uint64(offset)))
}

// Extended returns the low bytes of a node, extended.
func Extended(a *Node, size int64, signed bool) *Node {
	if size >= 8 {
		return a
	}
	return &Node{Kind: Extend, Size: int(size), Signed: signed, A: a}
}
