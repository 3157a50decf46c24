package replay

import (
	"golang.org/x/sys/unix"

	"diagnose/evidence"
)

// tracee is what the controller needs of a traced process. All calls are made
// on the kernel thread that started it (ptrace(2)), except ReadMemory, which
// any may call.
type tracee interface {
	Registers(tid int) (unix.PtraceRegs, error)
	SetRegisters(tid int, regs *unix.PtraceRegs) error
	// Floating is the FXSAVE area, 512 bytes.
	Floating(tid int) ([]byte, error)
	// PeekUser and PokeUser are for debug registers: offset is in struct user.
	PeekUser(tid int, offset uintptr) (uint64, error)
	PokeUser(tid int, offset uintptr, value uint64) error
	ReadMemory(addr evidence.Addr, p []byte) (int, error)
	WriteMemory(addr evidence.Addr, p []byte) error
	Siginfo(tid int) ([128]byte, error)
	SetSiginfo(tid int, info *[128]byte) error
}

// thread is a thread of the replayed process.
type thread struct {
	tid int
	// index is its number in the recording; 0 until the engine knows it.
	index uint32
	// stopped: it stands in a ptrace stop. held: it stays there, for it has come
	// to where it was when the recording ended.
	stopped, held bool
}

// placer brings threads to places that no event names, by breakpoints in the
// debug registers. Its calls come when the thread stands in a stop.
type placer interface {
	// arm: the thread's next event is a signal that came between two events,
	// at address event in the image. The thread has done the event before.
	arm(t *thread, event uint64) error
	// last: the thread has done its last event and goes on to where the core
	// has it.
	last(t *thread) (move, error)
	// trap is called at a SIGTRAP that is not the engine's.
	trap(t *thread, regs *unix.PtraceRegs) (move, error)
	// breakAt arms a breakpoint for Moments: trap answers with moveArrived when
	// the thread is at pc for the count-th time. 0 disarms.
	breakAt(t *thread, pc evidence.Addr, count uint64) error
}

// move is what becomes of a thread after a stop.
type move struct {
	kind moveKind
	// signal and info are what the thread is given when it goes on; 0 is
	// nothing.
	signal int
	info   *[128]byte
}

type moveKind uint8

const (
	moveOn      moveKind = iota // goes on
	moveHold                    // stays where it is until the replay is over
	moveArrived                 // has come to the Moment of breakAt
	moveForeign                 // the stop is none of the placer's
)
