package evidence

import "fmt"

// AgentHeap is what only the agent knows of a heap.
type AgentHeap struct {
	// Threads that used the heap, ended ones included.
	Threads int `json:"heap_threads"`
	// Allocations and Frees count the calls. Quarantined and QuarantinedBytes are of the freed
	// objects that are kept.
	Allocations      uint64 `json:"allocations"`
	Frees            uint64 `json:"frees"`
	Quarantined      uint64 `json:"quarantined"`
	QuarantinedBytes uint64 `json:"quarantined_bytes"`
	// MetadataBytes is the memory that the agent uses besides that for objects.
	MetadataBytes uint64 `json:"metadata_bytes"`
	// Errors counts the findings while the program ran.
	Errors uint64 `json:"errors"`
}

// MallocHeap is what the structures of the C library's malloc tell of its heap. Sizes of objects are what the program may use: what it
// asked for, rounded up.
type MallocHeap struct {
	// Library is the file that has malloc, Version the C library's; empty: not known.
	Library string `json:"library"`
	Version string `json:"version,omitempty"`
	// Arenas begin with the main one.
	Arenas []MallocArena `json:"arenas"`
	// Mapped counts the live objects that malloc mapped for themselves, MappedBytes their memory. They are Inferred, from
	// the headers at the starts of pages.
	Mapped      uint64 `json:"mapped"`
	MappedBytes uint64 `json:"mapped_object_bytes"`
	// Sizes are the live objects by size, those with most bytes first; SizesElided counts the sizes left out.
	Sizes       []MallocSize `json:"sizes"`
	SizesElided int          `json:"sizes_elided,omitempty"`
	// Types are the live objects by type, those with most bytes first; TypesElided counts the types left out.
	Types       []MallocType `json:"types"`
	TypesElided int          `json:"types_elided,omitempty"`
	// Largest are the largest live objects.
	Largest []MallocObject `json:"largest"`
	// Leaks are the live objects that no pointer leads to; nil when that is not known, and a Limit says why.
	Leaks *MallocLeaks `json:"leaks,omitempty"`
}

// MallocArena is one of malloc's arenas.
type MallocArena struct {
	// Addr is that of its malloc_state. Main is the arena whose memory is the program break's.
	Addr Addr `json:"addr"`
	Main bool `json:"main,omitempty"`
	// SystemBytes is the memory that it got from the kernel.
	SystemBytes uint64 `json:"system_bytes"`
	// LiveObjects counts its live objects, LiveBytes what they hold together.
	LiveObjects uint64 `json:"live_objects"`
	LiveBytes   uint64 `json:"live_bytes"`
	// Free counts the free pieces between objects, those in the threads' lists included, FreeBytes is their memory with its headers, and
	// LargestFree the largest one. TopBytes is the free memory at the end.
	Free        uint64 `json:"free"`
	FreeBytes   uint64 `json:"free_bytes"`
	LargestFree uint64 `json:"largest_free"`
	TopBytes    uint64 `json:"top_bytes"`
}

// MallocSize is the live objects of one size.
type MallocSize struct {
	// Size is in bytes, Objects their number, Bytes what they hold together.
	Size    uint64 `json:"size"`
	Objects uint64 `json:"objects"`
	Bytes   uint64 `json:"bytes"`
}

// MallocBasis says what the type of an object follows from.
type MallocBasis string

// What types follow from.
const (
	// BasisVtable: the object begins with the address of the class's table of virtual functions, as the first word of a complete
	// object does (Itanium C++ ABI 2.5.2).
	BasisVtable MallocBasis = "vtable"
	// BasisPointer: a variable or an object with a type points to it.
	BasisPointer MallocBasis = "pointer"
	// BasisText: it has printable text with an end.
	BasisText MallocBasis = "text"
)

// MallocShape says how an object's size fits its type.
type MallocShape string

// The ways in which a size fits a type.
const (
	ShapeOne   MallocShape = "one"       // malloc rounds the type's size to the object's
	ShapeArray MallocShape = "array"     // so many of them fit, and the bytes do not contradict it
	ShapeStart MallocShape = "beginning" // it is larger: more of them or other data follow, or its type is derived from this one
)

// MallocKind is a type of objects of the heap. Without a name it is not known.
type MallocKind struct {
	// Name is as in the program's language; empty: the type is not known.
	Name  string      `json:"name,omitempty"`
	Shape MallocShape `json:"shape,omitempty"`
	Basis MallocBasis `json:"basis,omitempty"`
	// Proof is Inferred for all types that have a name.
	Proof Proof `json:"proof,omitempty"`
}

// MallocType is the live objects of one type.
type MallocType struct {
	MallocKind
	// Objects is their number, Bytes what they hold together, Largest the size of the largest.
	Objects uint64 `json:"objects"`
	Bytes   uint64 `json:"bytes"`
	Largest uint64 `json:"largest"`
}

// MallocObject is a live object.
type MallocObject struct {
	Addr Addr `json:"addr"`
	// Size is in bytes.
	Size uint64     `json:"size"`
	Type MallocKind `json:"type"`
	// Mapped: malloc mapped it for itself.
	Mapped bool `json:"mapped,omitempty"`
	// Holder is one of the pointers to it; nil: none was found. HolderKind is the type of the object that has the pointer.
	Holder     *Holder     `json:"holder,omitempty"`
	HolderKind *MallocKind `json:"holder_type,omitempty"`
}

// MallocLeaks are the live objects that no chain of pointers leads to from the registers, the stacks in use, the variables with static storage, the
// thread-local variables and other memory of the program. Every word that has an address within an object counts as a pointer, so objects may be
// missing here; none is wrong unless the program hides pointers, or keeps them in memory that the process's source lacks.
type MallocLeaks struct {
	// Proof is Inferred.
	Proof Proof `json:"proof"`
	// Direct counts those that no other unreachable object leads to, and one of each cycle; Indirect those that others lead to. DirectBytes
	// and IndirectBytes are what they hold.
	Direct        uint64 `json:"direct"`
	DirectBytes   uint64 `json:"direct_bytes"`
	Indirect      uint64 `json:"indirect"`
	IndirectBytes uint64 `json:"indirect_bytes"`
	// Interior counts the live objects, and InteriorBytes their bytes, that are reachable only over a pointer to the middle of an object. They are no leaks here, nor for LeakSanitizer;
	// memcheck calls them possibly lost.
	Interior      uint64 `json:"interior"`
	InteriorBytes uint64 `json:"interior_bytes"`
	// Missing is the writable memory that the source lacks, in bytes: pointers may be there.
	Missing uint64 `json:"missing_bytes,omitempty"`
	// Unwritten is the writable memory of which a core has nothing because the program never wrote to it or excluded it from cores, in bytes: in the
	// second case pointers may be there.
	Unwritten uint64 `json:"unwritten_bytes,omitempty"`
	// Groups are the direct ones by type and size, those with most bytes first, with what they lead to; Elided counts the groups left out.
	Groups []MallocLeak `json:"groups"`
	Elided int          `json:"groups_elided,omitempty"`
}

// MallocLeak is the direct leaks of one type and size.
type MallocLeak struct {
	Type MallocKind `json:"type"`
	// Size is that of each in bytes, Objects their number.
	Size    uint64 `json:"size"`
	Objects uint64 `json:"objects"`
	// Indirect and IndirectBytes are of the objects that these lead to. One to which several groups lead is counted in one.
	Indirect      uint64 `json:"indirect"`
	IndirectBytes uint64 `json:"indirect_bytes"`
	// First is the first of them, by address.
	First Addr `json:"first"`
}

// check reports what makes the summary of malloc's heap unusable.
func (m *MallocHeap) check() error {
	if l := m.Leaks; l != nil {
		if l.Proof != Inferred {
			return fmt.Errorf("unreachable objects that are %q", l.Proof)
		}
		var objects uint64
		for i := range l.Groups {
			objects += l.Groups[i].Objects
		}
		if objects > l.Direct || l.Elided == 0 && objects != l.Direct {
			return fmt.Errorf("%d unreachable objects in groups, of %d", objects, l.Direct)
		}
	}
	for i := range m.Types {
		if k := &m.Types[i].MallocKind; (k.Basis == "") != (k.Proof == "") {
			return fmt.Errorf("the type %q that is %q", k.Name, k.Proof)
		}
	}
	return nil
}
