// Package futex names the numbers of futex(2) (include/uapi/linux/futex.h).
package futex

// The commands.
const (
	Wait          = 0
	Wake          = 1
	Requeue       = 3
	CmpRequeue    = 4
	WakeOp        = 5
	LockPI        = 6
	WaitBitset    = 9
	WakeBitset    = 10
	WaitRequeuePI = 11
	LockPI2       = 13
)

// TIDMask is FUTEX_TID_MASK: the bits of the word of a robust or
// priority-inheriting lock that hold its owner.
const TIDMask = 0x3fffffff

const (
	private     = 128 // FUTEX_PRIVATE_FLAG
	commandMask = 0x7f
)

// Command is the command of an operation, without its flags.
func Command(op uint64) uint64 { return op & commandMask }

// Private reports whether an operation is on memory of one process.
func Private(op uint64) bool { return op&private != 0 }

// Waits reports whether an operation waits for a wake or for a lock.
func Waits(op uint64) bool {
	switch Command(op) {
	case Wait, LockPI, WaitBitset, WaitRequeuePI, LockPI2:
		return true
	}
	return false
}
