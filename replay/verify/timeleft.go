package verify

import (
	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/tracee"
)

// timeLeftArgument is the index of the argument through which the kernel returns how much time was
// left when a signal interrupts the call (clock_nanosleep(2), ppoll(2), select(2)).
var timeLeftArgument = map[uint64]int{
	unix.SYS_NANOSLEEP:       1,
	unix.SYS_CLOCK_NANOSLEEP: 3,
	unix.SYS_SELECT:          4,
	unix.SYS_PSELECT6:        4,
	unix.SYS_PPOLL:           2,
}

// timesLeft returns the times that the kernel wrote for the threads that slept when the process
// was stopped for its core. They depend on when the sleep had begun, which no event records. No
// thread has seen them.
func (v *verifier) timesLeft() []exclusion {
	const size = 16 // struct timespec and struct timeval
	var list []exclusion
	for _, i := range sortedKeys(v.recorded) {
		f := v.recorded[i].Frame
		if f == nil || f.Kind != agent.EntrySyscall {
			continue
		}
		argument, ok := timeLeftArgument[f.RAX]
		if !ok {
			continue
		}
		if at := [...]uint64{f.RDI, f.RSI, f.RDX, f.R10, f.R8}[argument]; at != 0 {
			list = append(list, exclusion{Span: tracee.Span{Start: at, End: at + size}, what: "the time that sleeping threads had left", why: "the kernel wrote it when it stopped them"})
		}
	}
	return list
}
