// Package procmaps reads /proc/PID/maps and /proc/PID/smaps (proc_pid_maps(5)).
package procmaps

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
)

// maxText bounds the text of a process's mappings: vm.max_map_count is
// 65,530 unless the administrator raised it, and a line has some 100 bytes.
const maxText = 256 << 20

// Mapping is one line: a range of a process's memory.
type Mapping struct {
	Start, End evidence.Addr // End is the first address after it
	Perms      string        // four characters: "r-xp"
	Offset     uint64        // in the file, in bytes
	Device     uint64        // as in stat(2)'s st_dev; 0 without a file
	Inode      uint64        // 0 without a file
	// Path is the file, with " (deleted)" after it where it was removed, or
	// what the kernel calls the mapping: "[stack]"; empty for neither.
	Path string
}

// Shared reports whether writes to the mapping are seen by others: MAP_SHARED of mmap(2).
func (m *Mapping) Shared() bool { return m.Perms[3] == 's' }

// Read returns the mappings of a process or of the process of a thread, in
// ascending order. It returns none for a process without memory: a zombie, a
// kernel thread, a first thread that ended before the others.
func Read(pid int) ([]Mapping, error) { return readFile(fmt.Sprintf("/proc/%d/maps", pid)) }

// ReadProcess is Read, but reads the mappings of another thread if the first one has ended: a
// thread that has ended has no memory.
func ReadProcess(pid int) ([]Mapping, error) {
	list, err := Read(pid)
	if err != nil || len(list) > 0 {
		return list, err
	}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	for _, t := range tasks {
		if list, err := readFile(fmt.Sprintf("/proc/%d/task/%s/maps", pid, t.Name())); err == nil && len(list) > 0 {
			return list, nil
		}
	}
	return nil, fmt.Errorf("/proc/%d/maps: the process has no memory", pid)
}

func readFile(name string) ([]Mapping, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("%s: more than %d bytes", name, maxText)
	}
	list, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

// Parse reads the text of a maps file.
func Parse(text []byte) ([]Mapping, error) {
	var list []Mapping
	for line := range bytes.Lines(text) {
		m, err := ParseLine(strings.TrimSuffix(string(line), "\n"))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(list)+1, err)
		}
		list = append(list, m)
	}
	return list, nil
}

var errFields = errors.New("has too few fields")

// ParseLine reads a line without its end, such as
//
//	7f05-7f06 r-xp 00001000 fe:00 325835   /usr/lib/x.so
func ParseLine(line string) (Mapping, error) {
	m, err := parseLine(line)
	if err != nil {
		return Mapping{}, fmt.Errorf("%q %w", line, err)
	}
	return m, nil
}

func parseLine(line string) (Mapping, error) {
	fields := strings.SplitN(line, " ", 6)
	if len(fields) < 5 || len(fields[1]) != len("rwxp") {
		return Mapping{}, errFields
	}
	low, high, _ := strings.Cut(fields[0], "-")
	major, minor, _ := strings.Cut(fields[3], ":")
	var numbers [5]uint64
	for i, text := range []string{low, high, fields[2], major, minor} {
		var err error
		if numbers[i], err = strconv.ParseUint(text, 16, 64); err != nil {
			return Mapping{}, fmt.Errorf("has no number: %w", err)
		}
	}
	inode, err := strconv.ParseUint(fields[4], 10, 64)
	if err != nil {
		return Mapping{}, fmt.Errorf("has no inode: %w", err)
	}
	m := Mapping{
		Start: evidence.Addr(numbers[0]), End: evidence.Addr(numbers[1]),
		Perms: fields[1], Offset: numbers[2], Inode: inode,
		Device: unix.Mkdev(uint32(numbers[3]), uint32(numbers[4])),
	}
	if m.Start >= m.End {
		return Mapping{}, errors.New("ends before it starts")
	}
	if len(fields) == 6 {
		// The kernel escapes only line ends (show_map_vma in fs/proc/task_mmu.c).
		m.Path = strings.ReplaceAll(strings.TrimLeft(fields[5], " "), `\012`, "\n")
	}
	return m, nil
}
