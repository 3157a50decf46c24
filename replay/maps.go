package replay

import (
	"fmt"
	"sort"
	"strings"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/internal/procmaps"
)

// mapping is a line of /proc/PID/maps.
type mapping struct {
	span
	perms  string // "r-xp"
	offset uint64
	path   string
}

// mappings are in ascending order.
type mappings []mapping

func readMaps(pid int) (mappings, error) {
	lines, err := procmaps.ReadProcess(pid)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return mappingsOf(lines), nil
}

func mappingsOf(lines []procmaps.Mapping) mappings {
	list := make(mappings, len(lines))
	for i, l := range lines {
		list[i] = mapping{span: span{uint64(l.Start), uint64(l.End)}, perms: l.Perms, offset: l.Offset, path: l.Path}
	}
	return list
}

func (l mappings) at(addr uint64) *mapping {
	i := sort.Search(len(l), func(i int) bool { return l[i].end > addr })
	if i == len(l) || addr < l[i].start {
		return nil
	}
	return &l[i]
}

func (l mappings) executable(addr uint64) bool {
	m := l.at(addr)
	return m != nil && m.perms[2] == 'x'
}

// hidden reports whether a mapping is not compared: the engine's own, and those that the kernel
// provides.
func hidden(start uint64, path string) bool {
	return start >= agent.EngineBase && start < agent.EngineStacks || path == "[vdso]" || path == "[vsyscall]" || strings.HasPrefix(path, "[vvar")
}

func (m mapping) String() string {
	text := fmt.Sprintf("%v-%v %s", evidence.Addr(m.start), evidence.Addr(m.end), m.perms)
	switch {
	case m.path == "":
		return text + " (no file)"
	case m.path[0] == '[':
		return text + " " + m.path
	}
	return fmt.Sprintf("%s %s+%#x", text, m.path, m.offset)
}

func (l mappings) overlaps(low, high uint64) bool {
	for i := range l {
		if l[i].start < high && l[i].end > low {
			return true
		}
	}
	return false
}
