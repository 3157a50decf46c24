package tracee

import (
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pinned counts the processes that were pinned.
var pinned atomic.Uint32

// Pin restricts the process and this thread, which traces it, to one processor of those that they
// may use, a different one each time. The process's threads run in turn. Waking a thread on
// another processor costs more than most code between two events, and a stop costs half as much on
// one processor. Pinning only affects speed, so there is no error. The program sees the recorded
// affinity: the result of that call comes from the log. This thread ends with the replay.
func (p *Process) Pin() {
	var may unix.CPUSet
	if unix.SchedGetaffinity(p.PID, &may) != nil || may.Count() < 2 {
		return
	}
	left := (pinned.Add(1) + uint32(os.Getpid())) % uint32(may.Count())
	for cpu := range 8 * int(unsafe.Sizeof(may)) {
		if !may.IsSet(cpu) {
			continue
		}
		if left == 0 {
			p.restrict(cpu, &may)
			return
		}
		left--
	}
}

// PinTo is Pin to a processor. False: they may not use it.
func (p *Process) PinTo(cpu int) bool {
	var may unix.CPUSet
	if cpu < 0 || unix.SchedGetaffinity(p.PID, &may) != nil || !may.IsSet(cpu) {
		return false
	}
	if may.Count() > 1 {
		p.restrict(cpu, &may)
	}
	return true
}

func (p *Process) restrict(cpu int, may *unix.CPUSet) {
	var one unix.CPUSet
	one.Set(cpu)
	unix.SchedSetaffinity(p.PID, &one)
	unix.SchedSetaffinity(0, &one)
	p.allowed = may
}

// PinApart restricts this thread to other processors than that of the process, which is pinned. False: there are none.
func (p *Process) PinApart() bool {
	var own unix.CPUSet
	if p.allowed == nil || unix.SchedGetaffinity(p.PID, &own) != nil || own == *p.allowed {
		return false
	}
	others := *p.allowed
	for cpu := range 8 * int(unsafe.Sizeof(own)) {
		if own.IsSet(cpu) {
			others.Clear(cpu)
		}
	}
	return unix.SchedSetaffinity(0, &others) == nil
}

// PinTogether undoes PinApart: this thread is on the process's processor again.
func (p *Process) PinTogether() {
	var own unix.CPUSet
	if unix.SchedGetaffinity(p.PID, &own) == nil {
		unix.SchedSetaffinity(0, &own)
	}
}

// Unpin undoes pin for a process that is handed to a debugger, which this thread starts.
func (p *Process) Unpin() {
	if p.allowed == nil {
		return
	}
	unix.SchedSetaffinity(0, p.allowed)
	for tid := range p.Threads {
		unix.SchedSetaffinity(tid, p.allowed)
	}
	p.allowed = nil
}

// PinTracer restricts this thread, which traces a copy of a process, to the copy's processors.
func (p *Process) PinTracer() {
	var may, all unix.CPUSet
	if unix.SchedGetaffinity(p.PID, &may) != nil || unix.SchedGetaffinity(os.Getpid(), &all) != nil || may == all {
		return
	}
	unix.SchedSetaffinity(0, &may)
	p.allowed = &all
}
