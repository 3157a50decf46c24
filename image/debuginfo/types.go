package debuginfo

// Kind is the kind of a type.
type Kind uint8

// The kinds of type; typedefs and qualifiers keep the kind of what they name.
const (
	KindUnknown Kind = iota
	KindVoid
	KindBool
	KindChar // signed or unsigned character of any width
	KindInt
	KindUint
	KindFloat
	KindComplex
	KindEnum
	KindPointer // pointers and references
	KindStruct
	KindUnion
	KindArray
	KindFunc
)

// Type is a type as the program declared it. Members and elements are resolved
// on demand, so cyclic types are no problem.
type Type interface {
	// Name as written in C or C++: "struct session *", "const char [16]".
	Name() string
	Kind() Kind
	// Size in bytes; 0 when not known.
	Size() int64
	// Elem is a pointer's target or an array's element; nil for void pointers.
	Elem() Type
	// Count is an array's number of elements, -1 when not known.
	Count() int64
	// Members of a struct or union, base classes among them, in layout order.
	// Virtual base classes are left out: their offset is stored in the object.
	Members() []Member
	// Enumerator returns the name of an enumeration's value.
	Enumerator(value int64) (string, bool)
	// Reference reports whether a pointer is a C++ reference.
	Reference() bool
	// Variant returns the name of a Rust enum's active variant and the members
	// of its payload, with offsets in the enum; discriminant is called to read
	// the member that selects the variant. ok is false for types without
	// variants; name is empty when the discriminant could not be read or names
	// none.
	Variant(discriminant func(Member) (uint64, error)) (name string, members []Member, ok bool)
}

// Member is a member of a struct or union.
type Member struct {
	Name   string
	Offset int64 // in bytes
	Type   Type
	// BitSize is 0 for a member that is not a bit field; BitOffset counts
	// from bit 0 of the byte at Offset.
	BitSize, BitOffset int64
	// Base marks a base class.
	Base bool
}

// SizeIn is the size of a member of a type in bytes. Where the member's own type is only declared, as clang leaves the classes of libraries, it
// is the room up to the next member, padding included.
func SizeIn(t Type, m Member) int64 {
	if size := m.Type.Size(); size > 0 || m.Type.Kind() != KindStruct {
		return size
	}
	end := t.Size()
	for _, next := range t.Members() {
		if next.Offset > m.Offset {
			end = min(end, next.Offset)
		}
	}
	return end - m.Offset
}
