package sandbox

import (
	"fmt"
	"os"

	"diagnose/internal/procmaps"
)

// neighbour is the program as the address space of the process sees it: where one has memory, the other must not have any.
type neighbour struct {
	pid  int
	maps *os.File // /proc/PID/maps
	// own are the parts of the address space that the process may use.
	own []zone
	// slow: the kernel does not answer PROCMAP_QUERY.
	slow bool
}

// zone is a range of addresses.
type zone struct{ start, end uint64 }

const (
	// growth is the room that memory which grows gets on both sides. The data of the process has a limit of 4 GB.
	growth = 16 << 30
	// stackGrowth is that of the stack, whose limit is 8 MB by default.
	stackGrowth = 64 << 20
	// high begins where the kernel puts stacks.
	high = 0x7f0000000000
)

func openNeighbour(pid int) (*neighbour, error) {
	f, err := procmaps.OpenQueries(pid)
	if err != nil {
		return nil, err
	}
	return &neighbour{pid: pid, maps: f}, nil
}

func (n *neighbour) close() {
	if n != nil {
		n.maps.Close()
	}
}

// settle reads where the process with an id has memory, and reports whether the program has none there.
func (n *neighbour) settle(pid int) (bool, error) {
	list, err := procmaps.Read(pid)
	if err != nil {
		return false, err
	}
	n.own = nil
	for _, m := range list {
		if m.Path == "[vsyscall]" {
			continue
		}
		z := zone{uint64(m.Start) - stackGrowth, uint64(m.End)}
		if z.end < high {
			z = zone{uint64(m.Start) - min(growth, uint64(m.Start)), uint64(m.End) + growth}
		}
		if last := len(n.own) - 1; last >= 0 && z.start <= n.own[last].end {
			n.own[last].end = max(n.own[last].end, z.end)
			continue
		}
		n.own = append(n.own, z)
	}
	if len(n.own) == 0 {
		return false, fmt.Errorf("the process %d has no memory", pid)
	}
	return n.isFree(), nil
}

// isOwn reports whether an address may be the process's.
func (n *neighbour) isOwn(addr uint64) bool {
	for _, z := range n.own {
		if addr >= z.start && addr < z.end {
			return true
		}
	}
	return false
}

// isFree reports whether the program has no memory where the process may have some.
func (n *neighbour) isFree() bool {
	for _, z := range n.own {
		if n.slow {
			return n.isFreeByList()
		}
		q, found, err := procmaps.Find(n.maps, z.start, procmaps.OrNext)
		if err != nil {
			n.slow = true
			return n.isFreeByList()
		}
		if found && q.Start < z.end {
			return false
		}
	}
	return true
}

func (n *neighbour) isFreeByList() bool {
	list, err := procmaps.Read(n.pid)
	if err != nil {
		return false
	}
	for _, m := range list {
		for _, z := range n.own {
			if m.Path != "[vsyscall]" && uint64(m.Start) < z.end && uint64(m.End) > z.start {
				return false
			}
		}
	}
	return true
}

// mappingFlags returns the flags of the mapping of a process that has an address; 0: there is none. maps is its file /proc/PID/maps.
func mappingFlags(pid int, maps *os.File, addr uint64) procmaps.QueryFlags {
	if q, _, err := procmaps.Find(maps, addr, 0); err == nil {
		return q.Flags
	}
	list, err := procmaps.Read(pid)
	if err != nil {
		return 0
	}
	for _, m := range list {
		if addr < uint64(m.Start) || addr >= uint64(m.End) {
			continue
		}
		flags := procmaps.QueryFlags(0)
		for i, flag := range map[int]procmaps.QueryFlags{0: procmaps.Readable, 1: procmaps.Writable, 2: procmaps.Executable} {
			if m.Perms[i] != '-' {
				flags |= flag
			}
		}
		if m.Shared() {
			flags |= procmaps.SharedFlag
		}
		return flags
	}
	return 0
}

// isCode reports whether the program has code at an address.
func (n *neighbour) isCode(addr uint64) bool {
	return !n.isOwn(addr) && mappingFlags(n.pid, n.maps, addr)&procmaps.Executable != 0
}
