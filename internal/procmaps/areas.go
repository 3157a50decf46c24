package procmaps

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Area is an entry of /proc/PID/smaps (proc_pid_smaps(5)).
type Area struct {
	Mapping
	Anonymous bool     // some pages are private to the process
	Flags     []string // VmFlags: "rd"
	Resident  uint64   // bytes in memory
}

// Has reports whether the kernel gives the area a flag.
func (a *Area) Has(flag string) bool { return slices.Contains(a.Flags, flag) }

// ReadAreas reads /proc/PID/smaps, in ascending order. It returns none for a process without
// memory, as Read does.
func ReadAreas(pid int) ([]Area, error) {
	name := fmt.Sprintf("/proc/%d/smaps", pid)
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := parseAreas(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

// parseAreas reads the text of a smaps file. A line that does not begin with a capital letter
// begins an entry. The lines are shorter than the Scanner's bound: a path has at most PATH_MAX
// bytes of up to four characters each.
func parseAreas(text io.Reader) (list []Area, err error) {
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		line := lines.Text()
		key, value, _ := strings.Cut(line, ":")
		switch {
		case key != "" && (key[0] < 'A' || key[0] > 'Z'):
			m, err := ParseLine(line)
			if err != nil {
				return nil, err
			}
			list = append(list, Area{Mapping: m})
		case len(list) == 0:
			return nil, fmt.Errorf("begins with %q", line)
		case key == "Anonymous" || key == "Swap":
			a := &list[len(list)-1]
			a.Anonymous = a.Anonymous || strings.TrimSpace(value) != "0 kB"
		case key == "Rss":
			number, _, _ := strings.Cut(strings.TrimSpace(value), " ")
			kilobytes, err := strconv.ParseUint(number, 10, 54)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			list[len(list)-1].Resident = kilobytes << 10
		case key == "VmFlags":
			list[len(list)-1].Flags = strings.Fields(value)
		}
	}
	return list, lines.Err()
}
