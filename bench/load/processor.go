package load

import (
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime is what this process and those that it waited for have used of the processors, in seconds.
func ProcessorTime() (seconds float64) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if err := unix.Getrusage(who, &u); err != nil {
			panic(err) // of these two, never
		}
		seconds += time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
	}
	return seconds
}
