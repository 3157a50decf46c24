package watchtrace

import (
	"math"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/replay/record/eventlog"
)

// reach is how much memory after the address in an argument a system call may change that has no
// row of its own here.
const reach = 4096

// unseenWriters are the limits of a recording by which memory may have been written that no pass
// sees: by other processes, and by system calls that are not known or not intercepted.
var unseenWriters = map[string]bool{eventlog.LimitShared.String(): true, eventlog.LimitSyscall.String(): true, eventlog.LimitSite.String(): true}

// call notes the traced memory that a system call may have changed without an access that passes
// see. What a replay copies from the log is seen; but calls that concern the process itself are made
// again, and what they write follows from their arguments and their result.
func (r *historyReader) call(e *eventlog.Event) {
	switch e.Object {
	case unix.SYS_MMAP, unix.SYS_MREMAP, unix.SYS_SHMAT:
		r.changed(uint64(e.Result), lengthOf(e))
	}
	for _, x := range e.Args {
		r.changed(x, reach)
	}
}

// lengthOf is the size of the memory that a call maps, as far as its arguments have it.
func lengthOf(e *eventlog.Event) uint64 {
	switch {
	case e.Object == unix.SYS_MMAP && len(e.Args) > 1:
		return e.Args[1]
	case e.Object == unix.SYS_MREMAP && len(e.Args) > 2:
		return e.Args[2]
	}
	return 1 << 30
}

// kernel notes that the kernel may have written anywhere: the frame of a signal that was a fault, the
// ids of a thread that begins or ends, and the robust locks of one that ends.
func (r *historyReader) kernel() {
	r.history.calls = append(r.history.calls, evidence.Call{Position: r.history.events, Size: math.MaxUint64})
}

func (r *historyReader) changed(start, size uint64) {
	for i := range r.targets {
		t := &r.targets[i]
		if start < uint64(t.Addr)+uint64(t.Size) && start+size > uint64(t.Addr) {
			r.history.calls = append(r.history.calls, evidence.Call{Position: r.history.events, Start: evidence.Addr(start), Size: size})
			return
		}
	}
}
