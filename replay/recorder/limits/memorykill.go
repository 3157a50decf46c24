package limits

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
)

// MemoryKills returns how many processes the kernel has killed for lack of memory since it started,
// including those in control groups (oom_kill of /proc/vmstat, since Linux 4.13). It is 0 if
// the kernel does not say.
func MemoryKills() uint64 {
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
