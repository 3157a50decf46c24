package recorder

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"diagnose/replay/record"
)

// memoryKills is how many processes the kernel has killed for lack of memory since it started,
// including those in control groups (oom_kill of /proc/vmstat, since Linux 4.13). It is 0 if
// the kernel does not say.
func memoryKills() uint64 {
	f, err := os.Open("/proc/vmstat")
	if err != nil {
		return 0
	}
	defer f.Close()
	return readMemoryKills(f)
}

func readMemoryKills(vmstat io.Reader) uint64 {
	lines := bufio.NewScanner(vmstat)
	for lines.Scan() {
		if value, found := strings.CutPrefix(lines.Text(), "oom_kill "); found {
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}

// killedMeanwhile is how many processes the kernel killed for lack of memory since the run
// began, if a process of the run died of SIGKILL. The kernel does not say which processes it
// killed.
func (r *run) killedMeanwhile(o *record.Outcome) uint64 {
	if o.Kind != record.OutcomeSignal || syscall.Signal(o.Signal) != unix.SIGKILL {
		return 0
	}
	return memoryKills() - r.memoryKills
}
