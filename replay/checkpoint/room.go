package checkpoint

import (
	"fmt"
	"os"
)

// HasRoom reports whether so many copies of a process may take all the memory that it has, and leave half of the free memory. Memory that
// cannot be measured leaves no room.
func HasRoom(pid, copies int) bool {
	var size, resident, available uint64
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return false
	}
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return false
	}
	free, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return false
	}
	var total, unused uint64
	if _, err := fmt.Sscanf(string(free), "MemTotal: %d kB\nMemFree: %d kB\nMemAvailable: %d kB", &total, &unused, &available); err != nil {
		return false
	}
	return resident*uint64(os.Getpagesize())*uint64(copies) <= available<<10/2
}
