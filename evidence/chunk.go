package evidence

import "fmt"

// ChunkState says whether a chunk of the C library's heap is the program's.
type ChunkState string

// The states of a chunk.
const (
	// ChunkInUse: it is in no list of free chunks that could be read.
	ChunkInUse ChunkState = "in-use"
	ChunkFree  ChunkState = "free"
	// ChunkRest is the rest of an arena, from which new objects are cut.
	ChunkRest ChunkState = "rest"
	// ChunkUnknown: not all places where the allocator keeps free objects could be read.
	ChunkUnknown ChunkState = "unknown"
)

// FreeList is a kind of list of free chunks.
type FreeList string

// The kinds of lists of glibc.
const (
	ListTcache   FreeList = "tcache" // a thread's own
	ListFast     FreeList = "fast"
	ListUnsorted FreeList = "unsorted"
	ListSmall    FreeList = "small"
	ListLarge    FreeList = "large"
)

// The places where jemalloc and tcmalloc keep free objects.
const (
	ListThread   FreeList = "thread cache"
	ListSlab     FreeList = "slab"           // of jemalloc: pages of objects of one size
	ListTransfer FreeList = "transfer cache" // of tcmalloc: lists on the way from one thread's cache to another's
	ListSpan     FreeList = "span"           // of tcmalloc: pages of objects of one size
	ListPages    FreeList = "free pages"
)

// Allocator is an allocator that a program uses instead of the C library's.
type Allocator string

// The allocators; none is the C library's.
const (
	Jemalloc Allocator = "jemalloc"
	Tcmalloc Allocator = "tcmalloc"
)

// Bytes are the contents of memory.
type Bytes struct {
	// Hex is the memory, hexadecimal, in memory order and cut to a length that a person reads;
	// Text its printable ones. In a report "xx" is a byte of a secret.
	Hex  string `json:"hex"`
	Text string `json:"text"`
}

// Chunk is an object of the heap of the C library or of another allocator, or a free piece of it.
type Chunk struct {
	// Allocator is the other allocator.
	Allocator Allocator `json:"allocator,omitempty"`
	// Addr is the address that malloc returned. Size is how many bytes the program may use: what
	// it asked for, rounded up.
	Addr  Addr       `json:"addr"`
	Size  uint64     `json:"size"`
	State ChunkState `json:"state"`
	// List is that of a free chunk, Thread the thread whose list it is.
	List   FreeList   `json:"list,omitempty"`
	Thread *ThreadRef `json:"thread,omitempty"`
	// Pages: these are free pages of another allocator. The objects that were in them are not known.
	Pages bool `json:"pages,omitempty"`
	// Mapped: malloc mapped it for itself.
	Mapped bool `json:"mapped,omitempty"`
	// First are its first bytes.
	First *Bytes `json:"first,omitempty"`
	// Holders are pointers into it, those with a name first; FurtherHolders counts those left out.
	// HoldersCut: not all memory was searched for them.
	Holders        []Holder `json:"holders,omitempty"`
	FurtherHolders int      `json:"further_holders,omitempty"`
	HoldersCut     bool     `json:"holders_cut,omitempty"`
}

// HolderKind says where a pointer to an object is.
type HolderKind string

// The kinds of places of pointers.
const (
	HolderVariable HolderKind = "variable" // a variable or an argument of a frame
	HolderGlobal   HolderKind = "global"
	HolderObject   HolderKind = "object" // an object of the heap
	HolderStack    HolderKind = "stack"
	HolderRegister HolderKind = "register"
	HolderMemory   HolderKind = "memory" // thread-local memory, or a mapping of the program
)

// Holder is a pointer to an object.
type Holder struct {
	Kind HolderKind `json:"kind"`
	// Name is the variable or the register, Function the one whose frame has the variable, and
	// Type the pointer's as the program writes it.
	Name     string `json:"name,omitempty"`
	Function string `json:"function,omitempty"`
	Type     string `json:"type,omitempty"`
	// Address is where the pointer is; 0 for a register or a variable in one. Offset is where
	// in the object it points to.
	Address Addr   `json:"address,omitempty"`
	Offset  uint64 `json:"offset,omitempty"`
	// Object is the object of the heap that has the pointer, at ObjectOffset; ObjectSize is its size.
	Object       Addr   `json:"object,omitempty"`
	ObjectSize   uint64 `json:"object_size,omitempty"`
	ObjectOffset uint64 `json:"object_offset,omitempty"`
}

// HeaderFault is the way in which the header of a chunk is bad.
type HeaderFault string

// The faults of headers.
const (
	// HeaderSize: no chunk can have the size.
	HeaderSize HeaderFault = "impossible-size"
	// HeaderBeyond: the chunk would end after the memory of its arena.
	HeaderBeyond HeaderFault = "beyond-the-end"
	// HeaderFlags: a flag is set that chunks of the arena do not have.
	HeaderFlags HeaderFault = "impossible-flags"
	// HeaderPrevFree: it says that the chunk before is free, and that is in no list.
	HeaderPrevFree HeaderFault = "previous-not-free"
	// HeaderPrevUsed: it says that the chunk before is in use, and that is in a list.
	HeaderPrevUsed HeaderFault = "previous-free"
	// HeaderSkips: the chunk would contain whole other chunks.
	HeaderSkips HeaderFault = "contains-chunks"
	// HeaderTop: the size of the rest of the arena is not that of its memory.
	HeaderTop HeaderFault = "top-size"
)

// ChunkHeader is the header of a chunk that is not as malloc makes it.
type ChunkHeader struct {
	// Addr is its address: 16 bytes before the object. Bytes are these 16: the first eight are the
	// last of the object before, the others the size with its flags.
	Addr  Addr        `json:"addr"`
	Bytes Bytes       `json:"bytes"`
	Fault HeaderFault `json:"fault"`
	// SizeWord is the size with its flags as it is, Size the size that the chunk had before, with its
	// header; 0: it is not known.
	SizeWord Addr   `json:"size_word"`
	Size     uint64 `json:"size,omitempty"`
}

// LinkFault is the way in which a link of a list of free chunks is bad.
type LinkFault string

// The faults of links.
const (
	LinkNowhere   LinkFault = "no-chunk"        // it is no address of a chunk
	LinkUnpaired  LinkFault = "not-linked-back" // the chunk that it leads to does not link back
	LinkCycle     LinkFault = "cycle"           // it leads to a chunk that the list has already
	LinkOtherSize LinkFault = "other-size"      // it leads to a chunk of another size
)

// ListLink is a link of a list of free chunks that is not as malloc makes it.
type ListLink struct {
	List  FreeList  `json:"list"`
	Fault LinkFault `json:"fault"`
	// Size is that of the list's objects, in bytes; 0 for a list of several sizes.
	Size uint64 `json:"size,omitempty"`
	// Addr is where the link is, in a free object; 0: it is the list's head. Word is the memory
	// there, To the address that it leads to, which differs where malloc combines links with
	// their addresses.
	Addr Addr  `json:"addr,omitempty"`
	Word Bytes `json:"word"`
	To   Addr  `json:"to"`
}

// HeapFacts are what the heap of the C library shows of a finding.
type HeapFacts struct {
	// Object is the object concerned: the one before a bad header, the one that was freed twice,
	// the one with a bad link, the one that a pointer points into.
	Object *Chunk `json:"object,omitempty"`
	// Header is the first bad one after Object, and Next the object that it is of.
	Header *ChunkHeader `json:"header,omitempty"`
	Next   *Chunk       `json:"next,omitempty"`
	Link   *ListLink    `json:"link,omitempty"`
	// Pointer is a pointer that the failure concerns; Offset is where in Object it points to.
	Pointer Addr   `json:"pointer,omitempty"`
	Offset  uint64 `json:"offset,omitempty"`
}

// check reports what makes the facts unusable.
func (h *HeapFacts) check() error {
	if h.Object == nil && h.Header == nil && h.Link == nil && h.Pointer == 0 {
		return fmt.Errorf("facts of the heap without an object, a header, a link or a pointer")
	}
	if o := h.Object; o != nil && (o.State == ChunkFree) != (o.List != "") {
		return fmt.Errorf("the object at %v is %s and in the list %q", o.Addr, o.State, o.List)
	}
	return nil
}
