package evidence

// PlaceClass says what kind of memory an address belongs to.
type PlaceClass string

// The classes of address.
const (
	PlaceNearNull     PlaceClass = "near-null"     // below 64 KiB, which is never mapped (vm.mmap_min_addr)
	PlaceNonCanonical PlaceClass = "non-canonical" // bits 47 to 63 differ
	PlaceKernel       PlaceClass = "kernel"        // upper canonical half
	PlaceUnmapped     PlaceClass = "unmapped"      // in no mapping
	PlaceFreedMapping PlaceClass = "freed-mapping" // unmapped, with signs that it was mapped before
	PlaceStackGuard   PlaceClass = "stack-guard"   // the inaccessible pages below a stack
	PlaceStack        PlaceClass = "stack"
	PlaceHeap         PlaceClass = "heap"
	PlaceGlobal       PlaceClass = "global" // writable data of an object
	PlaceReadOnly     PlaceClass = "read-only"
	PlaceCode         PlaceClass = "code"
	PlaceInaccessible PlaceClass = "inaccessible" // mapped without any permission
	PlaceMappedFile   PlaceClass = "mapped-file"
	PlaceAnonymous    PlaceClass = "anonymous"
	PlaceVDSO         PlaceClass = "vdso"
)

// Place says what an address is.
type Place struct {
	Addr  Addr       `json:"addr"`
	Class PlaceClass `json:"class"`
	// Text is a phrase that completes "the address is ...":
	// "12 bytes into the global cfg (section .bss of prog)".
	Text string `json:"text"`
	// Module, Section and Symbol name the object's part, where there is one;
	// Offset counts bytes from the symbol's start.
	Module  string `json:"module,omitempty"`
	Section string `json:"section,omitempty"`
	Symbol  string `json:"symbol,omitempty"`
	Offset  uint64 `json:"offset,omitempty"`
	// TID is the thread whose stack or stack guard it is; 0 is none.
	TID int `json:"tid,omitempty"`
	// Permissions is "r-x" and the like; empty for unmapped addresses.
	Permissions string `json:"permissions,omitempty"`
	Proof       Proof  `json:"proof"`
}
