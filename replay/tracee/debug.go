package tracee

import (
	"errors"
	"fmt"
	"math/bits"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/replay/ptrace"
)

// DebugRegisters is the number of breakpoints and watchpoints that a thread can have.
const DebugRegisters = 4

// RegisterError says that a replay needs a debug register that the watches occupy: to stop at a
// Moment, or at the place of a signal where no probe is possible. It would work with fewer
// watches.
type RegisterError struct{ Watches int }

func (e *RegisterError) Error() string {
	return fmt.Sprintf("replay: with %d watches no debug register is left for a place that has to be found", e.Watches)
}

// WatchRegisters are the debug registers of the watches, the same in all threads. They are
// assigned from the last register down, so the others are used as without watches.
type WatchRegisters struct {
	addresses [DebugRegisters]uint64
	Taken     uint8 // bit per register
	control   uint64
	// Kernel is the number that the kernel uses for watches that are perf events.
	Kernel int
}

// RegisterOf returns the register of a watch.
func RegisterOf(watch int) int { return DebugRegisters - 1 - watch }

// NewWatchRegisters assigns registers to watches, of which there are at most DebugRegisters.
func NewWatchRegisters(watches []Watch) WatchRegisters {
	var w WatchRegisters
	for i, x := range watches {
		n := RegisterOf(i)
		w.addresses[n] = uint64(x.Addr)
		w.Taken |= 1 << n
		const write, readWrite = 1, 3
		kind := uint64(readWrite)
		if x.Writes {
			kind = write
		}
		// Lengths 1, 2, 8 and 4 are 0 to 3.
		kind |= [...]uint64{1: 0, 2: 1, 4: 3, 8: 2}[x.Size] << 2
		w.control |= 1<<(2*n) | kind<<(16+4*n)
	}
	return w
}

// setDebug writes the debug registers of a stopped thread: the watches, and breakpoints for the
// execution at pcs. A new thread's DR7 reads back as set but is not armed, so 0 is written to it
// first.
func setDebug(tid int, w *WatchRegisters, pcs ...uint64) error {
	r := *w
	for _, pc := range pcs {
		n := bits.TrailingZeros8(^r.Taken)
		if n >= DebugRegisters {
			return &RegisterError{bits.OnesCount8(w.Taken)}
		}
		r.addresses[n] = pc
		r.Taken |= 1 << n
		r.control |= 1 << (2 * n) // execution is kind 0, length 0
	}
	err := r.write(tid)
	if w.Kernel > 0 && errors.Is(err, unix.ENOSPC) {
		return &RegisterError{w.Kernel}
	}
	return err
}

func (w *WatchRegisters) write(tid int) error {
	if err := ptrace.SetDebug(tid, 7, 0); err != nil {
		return err
	}
	for n, addr := range w.addresses {
		if w.Taken&(1<<n) == 0 {
			continue
		}
		if err := ptrace.SetDebug(tid, n, addr); err != nil {
			return err
		}
	}
	return ptrace.SetDebug(tid, 7, w.control)
}

// ArmWatches writes watches into the debug registers of a stopped thread, for a process whose breakpoints are traps.
func (w *WatchRegisters) ArmWatches(tid int) error { return w.write(tid) }

// Watch is a word of the process to be watched: 1, 2, 4 or 8 bytes at an address that is a
// multiple of the size (Intel SDM volume 3, 18.2.4).
type Watch struct {
	Addr evidence.Addr
	Size int
	// Writes leaves out reads. The hardware cannot watch reads alone.
	Writes bool
}
