package image

import (
	"sort"
	"strings"

	"diagnose/evidence"
)

// Mapping is a range of the address space with one permission and one source.
type Mapping struct {
	Start, End evidence.Addr
	// Perms is "rwx" with dashes; "???" for a file that a core lists without
	// its segment, "?--" if a debugger's core does not show whether the memory
	// was readable.
	Perms string
	// Path is the mapped file or a name in brackets ("[stack]", "[heap]",
	// "[vdso]"), Offset the file offset of Start. Cores name files only; the
	// names in brackets are then derived.
	Path   string
	Offset uint64
	// Missing is how many of its bytes neither the core nor the file holds.
	Missing uint64
	// Untouched: the core has nothing of it because the process never wrote to it, or excluded it from cores (MADV_DONTDUMP).
	Untouched bool
}

// Contains reports whether addr is in the mapping.
func (m *Mapping) Contains(addr evidence.Addr) bool { return addr >= m.Start && addr < m.End }

// Readable, Writable and Executable read Perms.
func (m *Mapping) Readable() bool   { return len(m.Perms) > 0 && m.Perms[0] == 'r' }
func (m *Mapping) Writable() bool   { return len(m.Perms) > 1 && m.Perms[1] == 'w' }
func (m *Mapping) Executable() bool { return len(m.Perms) > 2 && m.Perms[2] == 'x' }

func (m *Mapping) size() uint64 { return uint64(m.End - m.Start) }

// file reports whether a file is mapped.
func (m *Mapping) file() bool { return m.Path != "" && m.Path[0] != '[' }

// Mappings are in address order and do not overlap.
type Mappings []Mapping

// endingPast returns the index of the first mapping that ends past addr.
func (l Mappings) endingPast(addr evidence.Addr) int {
	return sort.Search(len(l), func(i int) bool { return l[i].End > addr })
}

// index returns the index of the mapping that holds addr, -1 if none does.
func (l Mappings) index(addr evidence.Addr) int {
	if i := l.endingPast(addr); i < len(l) && l[i].Contains(addr) {
		return i
	}
	return -1
}

// guardBelow returns the index of the inaccessible mapping that ends where
// mapping i starts, -1 if there is none.
func (l Mappings) guardBelow(i int) int {
	if i == 0 {
		return -1
	}
	g, m := &l[i-1], &l[i]
	if g.End != m.Start || g.Readable() || g.Writable() || g.Executable() || strings.HasPrefix(g.Perms, "?") || g.file() {
		return -1
	}
	return i - 1
}
