package replay

import (
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pinned counts the processes that were given a processor.
var pinned atomic.Uint32

// pin gives the process and this thread, which traces it, one processor of those
// that they may use, another one each time. Its threads run by turns, and to wake
// one on another processor costs more than most code between two events; a stop
// costs half as much. It is about speed alone, hence no error. The program sees
// the recorded affinity: that call's result is the log's. This thread ends with
// the replay.
func (c *controller) pin() {
	var may unix.CPUSet
	if unix.SchedGetaffinity(c.pid, &may) != nil || may.Count() < 2 {
		return
	}
	left := (pinned.Add(1) + uint32(os.Getpid())) % uint32(may.Count())
	for cpu := range 8 * int(unsafe.Sizeof(may)) {
		if !may.IsSet(cpu) {
			continue
		}
		if left == 0 {
			var one unix.CPUSet
			one.Set(cpu)
			unix.SchedSetaffinity(c.pid, &one)
			unix.SchedSetaffinity(0, &one)
			c.may = &may
			return
		}
		left--
	}
}

// unpin is for a process that is handed to somebody else, whom this thread starts.
func (c *controller) unpin() {
	if c.may == nil {
		return
	}
	unix.SchedSetaffinity(0, c.may)
	for tid := range c.threads {
		unix.SchedSetaffinity(tid, c.may)
	}
	c.may = nil
}
