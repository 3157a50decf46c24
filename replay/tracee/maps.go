package tracee

import (
	"fmt"
	"sort"
	"strings"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/internal/procmaps"
)

// Mapping is a line of /proc/PID/maps.
type Mapping struct {
	Span
	Perms  string // "r-xp"
	Offset uint64
	// Device and Inode are those of stat(2); 0 without a file.
	Device, Inode uint64
	Path          string
}

// Object is a file that is mapped at a place. Two mappings with one Object are of one loading of the file, or of loadings that
// have the same bytes at the same addresses, as long as the file does not change.
type Object struct {
	// Path is without the note of the kernel's that the file was removed (d_path in fs/d_path.c).
	Path          string
	Device, Inode uint64
	// Base is the address that the file's first byte has, or would have.
	Base uint64
}

// Object returns the object that the mapping is of; that of memory without a file is zero.
func (m *Mapping) Object() Object {
	if m.Inode == 0 {
		return Object{}
	}
	return Object{Path: strings.TrimSuffix(m.Path, " (deleted)"), Device: m.Device, Inode: m.Inode, Base: m.Start - m.Offset}
}

// Mappings are in ascending order.
type Mappings []Mapping

// ReadMaps reads the mappings of a process.
func ReadMaps(pid int) (Mappings, error) {
	lines, err := procmaps.ReadProcess(pid)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return MappingsOf(lines), nil
}

// MappingsOf converts lines of /proc/PID/maps, which are in ascending order.
func MappingsOf(lines []procmaps.Mapping) Mappings {
	list := make(Mappings, len(lines))
	for i, l := range lines {
		list[i] = Mapping{Span: Span{uint64(l.Start), uint64(l.End)}, Perms: l.Perms, Offset: l.Offset,
			Device: l.Device, Inode: l.Inode, Path: l.Path}
	}
	return list
}

// Containing returns the mapping that has an address; nil if there is none.
func (l Mappings) Containing(addr uint64) *Mapping {
	i := sort.Search(len(l), func(i int) bool { return l[i].End > addr })
	if i == len(l) || addr < l[i].Start {
		return nil
	}
	return &l[i]
}

// Executable reports whether an address has code.
func (l Mappings) Executable(addr uint64) bool {
	m := l.Containing(addr)
	return m != nil && m.Perms[2] == 'x'
}

// Hidden reports whether a mapping is not compared: the engine's own, and those that the kernel
// provides.
func Hidden(start uint64, path string) bool {
	return start >= agent.EngineBase && start < agent.EngineStacks || path == "[vdso]" || path == "[vsyscall]" || strings.HasPrefix(path, "[vvar")
}

func (m Mapping) String() string {
	text := fmt.Sprintf("%v-%v %s", evidence.Addr(m.Start), evidence.Addr(m.End), m.Perms)
	switch {
	case m.Path == "":
		return text + " (no file)"
	case m.Path[0] == '[':
		return text + " " + m.Path
	}
	return fmt.Sprintf("%s %s+%#x", text, m.Path, m.Offset)
}

// Overlap reports whether a mapping has an address from low to before high.
func (l Mappings) Overlap(low, high uint64) bool {
	for i := range l {
		if l[i].Start < high && l[i].End > low {
			return true
		}
	}
	return false
}
