package staticscan

import (
	"diagnose/evidence"
	"diagnose/image/debuginfo"
)

// Role says what part the bad value played in the failing instruction.
type Role string

// The roles.
const (
	RolePointer Role = "pointer" // the base of an address
	RoleIndex   Role = "index"   // the index of an address
	RoleTarget  Role = "target"  // where a call or jump went
	RoleDivisor Role = "divisor"
)

// Blame is the operand that made an instruction fail, in the program's
// terms, and where its value came from. A Blame without Role blames no
// operand; then Accessed is set at most, for an address that is fixed in the
// instruction.
type Blame struct {
	// Role is the part of the value, Value what it was, Register where the
	// instruction had it; empty when the instruction took it from memory.
	Role     Role
	Value    *evidence.Addr
	Register string
	// Accessed is the memory that was accessed ("session->user->name") and
	// AccessedType its type. Pointer is the bad value ("session->user") and
	// PointerType its type. Both are in the terms of Function; without debug
	// information they are "[rax+0x8]" and "rax" or "symbol+0x10".
	Accessed, AccessedType string
	Pointer, PointerType   string
	// Result is the function that returned Pointer; empty: it is no call's result, or the
	// function has no name.
	Result string
	// Index is the value of Pointer as a number, for RoleIndex, and Base the pointer that it was added to; nil: not known.
	Index string
	Base  *evidence.Addr
	// Function is the program's function that the value belongs to, at Site.
	// Through is the library function that it was handed to and that failed
	// ("strlen"), empty when Function itself failed.
	Function string
	Site     evidence.Site
	Through  string
	// Steps lead from the failing instruction back; the nearest is first.
	Steps []evidence.OriginStep
	// Split says that the value was made of two others on the way, and that the steps follow one of them, while the other may be
	// the wrong one.
	Split bool
	// Cell is the memory that the bad value was loaded from, CellSize its
	// size, CellName and CellType what the program calls it. Nil when the
	// value came from no memory, or from an address that is not known.
	Cell               *evidence.Addr
	CellSize           int
	CellName, CellType string
	// CellTyped is CellType as DWARF has it; nil without debug information.
	CellTyped debuginfo.Type
	// CellHolds says that the cell still holds the value.
	CellHolds bool
	// Outside says that Cell lies outside of the array that was read there, Beyond that
	// the failing instruction's memory does; nil: they do not, as far as is known.
	Outside, Beyond *Outside
	// Loaded is the instruction that loaded it.
	Loaded evidence.Site
	// Ways are the instructions that may have given the value, where the way back
	// ends because they are several.
	Ways []Way
	// Loads are the reads of memory among Steps, in their order, and Returned is the call that the last step is of; nil:
	// it is none.
	Loads    []Load
	Returned *Returned
}

// Way is an instruction that may have given a value.
type Way struct {
	PC    evidence.Addr
	Value uint64
}
