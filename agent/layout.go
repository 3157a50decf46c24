package agent

// The mirror of src/layout.h, which says what everything means. A test
// compares names, sizes, offsets and values with what the compiler says; the
// tag is the C name where it is not the Go name in lower case.

// Magic and Version are the first words of the root.
const (
	Magic   = 0x65736f6e67616964
	Version = 2
)

// Where the root is, and the windows as offsets from it.
const (
	Base  = 0x200000000000
	Step  = 0x020000000000
	Tries = 4

	OffRoot    = 0x0000000000
	OffHeaps   = 0x0040000000
	OffThreads = 0x0080000000
	OffSites   = 0x00c0000000
	OffSpans   = 0x0100000000
	OffMeta    = 0x1000000000
	OffObjects = 0x8000000000

	ObjectsLimit = 0x10000000000
)

// Sizes of the heap.
const (
	UnitShift   = 16
	Unit        = 1 << UnitShift
	BlockUnits  = 64
	Classes     = 120
	SmallMax    = 131072
	MinCanary   = 8
	MaxCanary   = 256
	LargeCanary = 4096
	Frames      = 12
	ErrorFrames = 32
	BatchSize   = 32
	MaxErrors   = 64
	ErrorBytes  = 256
)

// Parts of a slot's word.
const (
	WordSite     = 18
	WordThread   = 38
	WordState    = 58
	WordAPI      = 60
	WordReported = 62
	SizeMask     = 0x3ffff
	SiteMask     = 0xfffff
	ThreadMask   = 0xfffff
)

// Kinds of span.
const (
	SpanNone     = 0
	SpanSmall    = 1
	SpanLarge    = 2
	SpanInterior = 3
	SpanFreed    = 4

	// SpanGuarded is a flag.
	SpanGuarded = 1
)

// The fill of freed objects.
const (
	FillTag = 0xdf5d
	FillLow = 0x4d0
)

// What the agent does when it finds something.
const (
	OnErrorAbort    = 0
	OnErrorLog      = 1
	OnErrorContinue = 2
)

// How guards are made.
const (
	CanaryShift      = 3
	CanaryLargeShift = 7
	CanaryHigh       = 0x8080808080808080
	CanaryFactor     = 0x54fa20e28c919e87

	// DefaultCanary is the secret where the kernel gave no random bytes.
	DefaultCanary = 0xa7d3c1f5e9b38b95
)

// RawSpan is struct dg_span.
type RawSpan struct {
	Kind       uint8
	Class      uint8 `c:"class_"`
	Flags      uint16
	Units      uint32
	Slot       uint32
	First      uint32
	Slots      uint32
	Carved     uint32
	Heap       uint32
	Central    uint32
	Magic      uint64
	Words      uint64
	Bitmap     uint64
	Object     uint64
	Size       uint64
	End        uint64
	Next       uint64
	Prev       uint64
	FreeSite   uint32 `c:"free_site"`
	FreeThread uint32 `c:"free_thread"`
	Reserved   [3]uint64
}

// RawFreed is struct dg_freed.
type RawFreed struct {
	Object uint64
	Site   uint32
	Thread uint32
}

// RawRing is struct dg_ring.
type RawRing struct {
	Entries  uint64
	Head     uint32
	Tail     uint32
	Mask     uint32
	Reserved uint32
}

// RawBin is struct dg_bin.
type RawBin struct {
	Ring     RawRing
	Bump     uint64
	BumpEnd  uint64 `c:"bump_end"`
	BumpWord uint64 `c:"bump_word"`
	Span     uint32
	Keep     uint32
	Slot     uint32
	Waiting  uint32
}

// States of a heap.
const (
	HeapNone      = 0
	HeapOwned     = 1
	HeapIdle      = 2
	HeapAbandoned = 3
)

// RawHeap is struct dg_heap.
type RawHeap struct {
	State       uint32
	Thread      uint32
	Quarantined uint64
	Budget      uint64
	Busy        uint32
	Reserved32  uint32 `c:"reserved_"`
	Allocations uint64
	Frees       uint64
	Word        uint64
	Low         uint64
	Waiting     uint64
	Reserved    [7]uint64
	Bins        [Classes]RawBin
}

// States of a thread.
const (
	ThreadNone    = 0
	ThreadRunning = 1
	ThreadEnded   = 2
	ThreadParent  = 3
)

// RawThread is struct dg_thread.
type RawThread struct {
	TID       uint32
	State     uint32
	Heap      uint32
	Reserved  uint32
	StackLow  uint64 `c:"stack_low"`
	StackHigh uint64 `c:"stack_high"`
}

// RawSite is struct dg_site.
type RawSite struct {
	Next   uint32
	Frames uint32
	PC     [Frames]uint64
}

// RawError is struct dg_error.
type RawError struct {
	Kind        uint32
	When        uint32
	Thread      uint32
	WordValid   uint32 `c:"word_valid"`
	Pointer     uint64
	Object      uint64
	Size        uint64
	Word        uint64
	Guard       uint64
	Slot        uint64
	SlotEnd     uint64 `c:"slot_end"`
	Damage      uint64
	DamageEnd   uint64 `c:"damage_end"`
	FreeSite    uint32 `c:"free_site"`
	FreeThread  uint32 `c:"free_thread"`
	API         uint32
	TID         uint32
	Frames      uint32
	Fatal       uint32
	PC          [ErrorFrames]uint64
	BytesLength uint32 `c:"bytes_length"`
	Reserved    uint32
	Bytes       [ErrorBytes]uint8
}

// RawOptions is struct dg_options.
type RawOptions struct {
	OnError         uint32 `c:"on_error"`
	Stacks          uint32
	FillBytes       uint32 `c:"fill_bytes"`
	Exitcode        uint32
	CheckIntervalMS uint32 `c:"check_interval_ms"`
	OnKinds         uint32 `c:"on_kinds"`
	Quarantine      uint64
	Canary          uint64
}

// RawWindow is struct dg_window.
type RawWindow struct {
	Start  uint64
	Mapped uint64
	Used   uint64
}

// RawRoot is struct dg_root.
type RawRoot struct {
	Magic            uint64
	Version          uint32
	Size             uint32
	Base             uint64
	Ready            uint32
	PID              uint32
	Options          RawOptions
	Heaps            RawWindow
	Threads          RawWindow
	Sites            RawWindow
	Spans            RawWindow
	Meta             RawWindow
	Objects          RawWindow
	Boundary         uint64
	Errors           uint64
	ErrorCount       uint32 `c:"error_count"`
	Lock             uint32
	Fallback         uint32
	Lost             uint32
	Large            RawRing
	LargeQuarantined uint64 `c:"large_quarantined"`
	LargeBudget      uint64 `c:"large_budget"`
	Failures         uint64
	FailedSize       uint64 `c:"failed_size"`
	FailedAfter      uint64 `c:"failed_after"`
	FailedSite       uint32 `c:"failed_site"`
	FailedThread     uint32 `c:"failed_thread"`
	Mismatches       uint64
}

// CanaryWord is the guard of the slot with a number, which SlotNumber and
// LargeNumber make: the byte at address a is word >> (a % 8 * 8).
func CanaryWord(secret, number uint64) uint64 {
	return secret ^ number*CanaryFactor | CanaryHigh
}

// SlotNumber is that of the slot whose word is at an address.
func SlotNumber(word uint64) uint64 { return word >> CanaryShift }

// LargeNumber is that of the large object whose word is at an address.
func LargeNumber(word uint64) uint64 { return word >> CanaryLargeShift }

// FillWord is the word that a freed object at object is filled with.
func FillWord(objectsStart, object uint64) uint64 {
	return FillTag<<48 | (object-objectsStart)>>4<<12 | FillLow
}

// Filled is how much of a freed object of a size is filled at least.
func Filled(size, fillBytes uint64) uint64 {
	if size < fillBytes {
		return (size + 15) &^ 15
	}
	return fillBytes
}
