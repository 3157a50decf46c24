package checkpoint

import (
	"fmt"
	"os"
)

// HasRoom reports whether so many copies of a process may take all the memory that it has, and leave half of the free memory. Memory that
// cannot be measured leaves no room.
func HasRoom(pid, copies int) bool {
	var size, resident uint64
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return false
	}
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return false
	}
	return HasRoomFor(resident * uint64(os.Getpagesize()) * uint64(copies))
}

// HasRoomFor reports whether so many bytes leave half of the free memory.
func HasRoomFor(bytes uint64) bool {
	var total, unused, available uint64
	free, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return false
	}
	if _, err := fmt.Sscanf(string(free), "MemTotal: %d kB\nMemFree: %d kB\nMemAvailable: %d kB", &total, &unused, &available); err != nil {
		return false
	}
	return bytes <= available<<10/2
}
