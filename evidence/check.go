package evidence

// Relation is how two integers compare.
type Relation string

// The relations.
const (
	Equal    Relation = "=="
	NotEqual Relation = "!="
	Less     Relation = "<"
	AtMost   Relation = "<="
	Greater  Relation = ">"
	AtLeast  Relation = ">="
)

// Opposite is the relation that two integers have if they do not have this one.
func (r Relation) Opposite() Relation {
	switch r {
	case Equal:
		return NotEqual
	case NotEqual:
		return Equal
	case Less:
		return AtLeast
	case AtMost:
		return Greater
	case Greater:
		return AtMost
	}
	return Less
}

// Holds reports whether two numbers have the relation; signed: they are taken for signed ones.
func (r Relation) Holds(left, right uint64, signed bool) bool {
	less := left < right
	if signed {
		less = int64(left) < int64(right)
	}
	switch r {
	case Equal:
		return left == right
	case NotEqual:
		return left != right
	case Less:
		return less
	case AtMost:
		return less || left == right
	case Greater:
		return !less && left != right
	}
	return !less
}

// Check is the comparison by which a program reached the call that ended it: an assertion, abort, or a panic. Left had the relation
// to Right. Its proof level says how certain it is which comparison it was, and how it came out; each value has its own.
type Check struct {
	Left     CheckedOperand `json:"left"`
	Relation Relation       `json:"relation"`
	Right    CheckedOperand `json:"right"`
	// Site is the comparison's, of inlined library code the program's own; Instruction is its text.
	Site        Site   `json:"site"`
	Instruction string `json:"instruction"`
	Proof       Proof  `json:"proof"`
}

// CheckedOperand is a side of a comparison.
type CheckedOperand struct {
	// Name is what the program calls it, Type its type; empty: there are no words for it.
	Name string `json:"name,omitempty"`
	Type string `json:"type,omitempty"`
	// Register is where it was, if it was in one.
	Register string `json:"register,omitempty"`
	// Mask are the bits of it that were looked at; 0: all.
	Mask uint64 `json:"mask,omitempty"`
	// Value is what it was, as the program would write it; empty: the stopped process does not tell any more.
	// Proof is FromCore if that is certain, and Inferred if it is what memory holds now, which may have changed since.
	Value string `json:"value,omitempty"`
	Proof Proof  `json:"proof,omitempty"`
	// Constant: the code has it.
	Constant bool `json:"constant,omitempty"`
	// Origin is the way back of its value, the nearest step first.
	Origin []OriginStep `json:"origin,omitempty"`
}
