package sandbox

// The constants of control.h.
const (
	version       = 2
	pageSize      = 4096
	mostOps       = 512
	mostFrames    = 64
	outputSize    = 256 * 1024
	argumentPages = 64
	poolPages     = argumentPages + 4096
	mostSlots     = 4096
	missingShift  = 20
	unmap         = 0xffffffff
)

const (
	eventReady = iota + 1
	eventDone
	eventWanted
	eventPrinted
	eventFailed
	eventEnded
	eventCalled
)

// FailureKind says why code could not continue.
type FailureKind uint32

// The kinds of failures, those of control.h and those that the tool finds.
const (
	// Read is a read of an address where the program has no memory.
	Read FailureKind = iota + 1
	// Store is a store to memory that is not the code's own.
	Store
	// Missing is the use of a variable that has no value at the place.
	Missing
	// Call is a call of code that is neither the code's own nor the program's.
	Call
	// SystemCall is a system call that the process may not make.
	SystemCall
	// Signal is a fault of another kind, as a division by zero.
	Signal
	// Time: the code did not end in time.
	Time
	// Load: the code could not be started.
	Load
	// Exit: the code ended its process.
	Exit
	// Collision: the program has memory where the process has its own.
	Collision
	// Output: the code printed too much.
	Output
	// Called is a call of a function of the program that did not return.
	Called
)

// operation is struct dg_operation.
type operation struct {
	Addr        uint64
	Page, Count uint32
}

// callRegisters is struct dg_call.
type callRegisters struct {
	Function, Stack    uint64
	Integer            [6]uint64
	Vector             [8][2]uint64
	Answered, RAX, RDX uint64
	Result             [2][16]byte
	X87                [160]byte
}

// control is struct dg_control.
type control struct {
	Version                           uint32
	Block, Slots, Operations          uint32
	Operation                         [mostOps]operation
	Event, Failure                    uint32
	Address, Base, Arguments, Missing uint64
	Call                              callRegisters
	Frames, Output                    uint32
	Frame                             [mostFrames]uint64
	Text                              [outputSize]byte
}
