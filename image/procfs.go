package image

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/internal/procmaps"
	"diagnose/internal/wording"
)

// procFile is a path below /proc/PID.
func procFile(pid int, parts ...string) string {
	return filepath.Join(append([]string{"/proc", strconv.Itoa(pid)}, parts...)...)
}

// procStatus is what /proc/PID/status says (proc_pid_status(5)).
type procStatus struct {
	name         string
	state        string // "S (sleeping)"
	tgid, tracer int
	kernelThread bool
	addressSpace bool // VmSize is present
}

func readStatus(pid int) (procStatus, error) {
	var s procStatus
	text, err := os.ReadFile(procFile(pid, "status"))
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		switch key {
		case "Name":
			s.name = wording.Name(value) // for errors, too
		case "State":
			s.state = value
		case "Tgid":
			s.tgid, _ = strconv.Atoi(value)
		case "TracerPid":
			s.tracer, _ = strconv.Atoi(value)
		case "Kthread":
			s.kernelThread = value == "1"
		case "VmSize":
			s.addressSpace = true
		}
	}
	return s, nil
}

// zombie reports whether only the process's entry is left.
func (s *procStatus) zombie() bool {
	return strings.HasPrefix(s.state, "Z") || strings.HasPrefix(s.state, "X")
}

// listTasks returns the threads' ids in ascending order.
func listTasks(pid int) ([]int, error) {
	entries, err := os.ReadDir(procFile(pid, "task"))
	if err != nil {
		return nil, err
	}
	var tids []int
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids, nil
}

// liveMappings reads /proc/PID/maps.
func liveMappings(pid int) ([]Mapping, error) {
	lines, err := procmaps.Read(pid)
	if err != nil {
		return nil, err
	}
	return mappingsOf(lines), nil
}

// mappingsOf drops overlaps: the text is read in parts, and the process may
// change its mappings meanwhile.
func mappingsOf(lines []procmaps.Mapping) []Mapping {
	var list []Mapping
	last := evidence.Addr(0)
	for _, l := range lines {
		if l.Start < last {
			continue
		}
		m := Mapping{Start: l.Start, End: l.End, Perms: l.Perms[:3], Path: l.Path}
		if m.file() {
			m.Offset = l.Offset
		}
		list, last = append(list, m), m.End
	}
	return list
}

// readLiveAuxv reads /proc/PID/auxv.
func readLiveAuxv(pid int) (map[uint64]uint64, error) {
	b, err := os.ReadFile(procFile(pid, "auxv"))
	if err != nil {
		return nil, err
	}
	return parseAuxv(b), nil
}

func readCommandLine(pid int) string {
	b, err := os.ReadFile(procFile(pid, "cmdline"))
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(strings.TrimRight(string(b), "\x00"), "\x00", " ")
}

func threadName(pid, tid int) string {
	b, err := os.ReadFile(procFile(pid, "task", strconv.Itoa(tid), "comm"))
	if err != nil {
		return ""
	}
	return wording.Name(strings.TrimSuffix(string(b), "\n"))
}

// stackLimitOf returns the soft RLIMIT_STACK; 0 when it is not known.
func stackLimitOf(pid int) uint64 {
	var limit unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_STACK, nil, &limit) != nil {
		return 0
	}
	return limit.Cur
}

// elfClassOf reads the class and machine of a process's executable.
func elfClassOf(pid int) (class byte, machine uint16, err error) {
	f, err := os.Open(procFile(pid, "exe"))
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	var h [20]byte
	if _, err := f.ReadAt(h[:], 0); err != nil {
		return 0, 0, err
	}
	return h[4], binary.LittleEndian.Uint16(h[18:]), nil
}
