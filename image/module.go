package image

import (
	"fmt"
	"path/filepath"
	"sort"
	"sync"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
	"diagnose/image/object"
	"diagnose/internal/wording"
)

// Module is an object mapped into a process.
type Module struct {
	// Path is the process's; File is the file that was opened for it, "" if
	// none was.
	Path, File string
	// BuildID is read from the process's memory, or from the file if memory
	// does not hold it.
	BuildID string
	// Bias is added to the object's link-time addresses.
	Bias uint64
	// Start and End span its mappings, which may have holes.
	Start, End evidence.Addr
	// Object is nil when no file matched. Then names are module+offset.
	Object *object.File
	// TLSID is the module's thread-local storage index (1 is the
	// executable's if it has any), 0 when it has none or it is not known. It
	// follows from the order of loading; ThreadLocal checks it.
	TLSID int

	process *Process
	// ranges are the mappings and the .bss after them, in address order.
	ranges []addrRange
	image  *elfImage
	// fileStart is where the file's fileOffset is mapped.
	fileStart  evidence.Addr
	fileOffset uint64

	loadedOnce  sync.Once
	loaded      *loadedFile // of Object; see file
	goFunctions goFunctions
	mainOnce    sync.Once
	mainHasLine bool // of a statically linked program; see archive
	// toldDebug limits the limits on debug information to one per module.
	toldDebug sync.Once
}

type addrRange struct{ start, end evidence.Addr }

// Contains reports whether addr is in one of the module's mappings.
func (m *Module) Contains(addr evidence.Addr) bool {
	if m.ranges == nil {
		return addr >= m.Start && addr < m.End
	}
	i := sort.Search(len(m.ranges), func(i int) bool { return m.ranges[i].end > addr })
	return i < len(m.ranges) && addr >= m.ranges[i].start
}

// name is the module's name in messages.
func (m *Module) name() string { return wording.Name(filepath.Base(m.Path)) }

// file is Object with its debug information.
func (m *Module) file() *loadedFile {
	m.loadedOnce.Do(func() {
		if m.loaded == nil {
			m.loaded = &loadedFile{object: m.Object}
		}
	})
	return m.loaded
}

// Debug returns the module's DWARF, opened at the first call; nil without an
// error when there is none. It is safe for concurrent use.
func (m *Module) Debug() (*debuginfo.Info, error) {
	info, err := m.file().debugInfo(m.finder())
	if err != nil {
		return info, fmt.Errorf("debug information of %s: %w", m.name(), err)
	}
	return info, nil
}

// findDebugFile finds the file with the module's DWARF and adds that file's
// symbols to the module's own, which costs far less than opening the DWARF.
func (m *Module) findDebugFile() error { return m.file().findDebugFile(m.finder()) }

func (m *Module) finder() *object.Finder {
	if m.process == nil {
		return new(object.Finder)
	}
	finder := m.process.options.Finder // a copy: the file may outlive the process
	return &finder
}

// DebugFile returns the path of the separate file that the module's DWARF and
// symbols come from; "" when they are in the object itself, there are none, or
// they were not needed yet.
func (m *Module) DebugFile() string {
	if f := m.file().separate.Load(); f != nil {
		return f.Path()
	}
	return ""
}

// LinkAddr converts an address of the process to one of the object.
func (m *Module) LinkAddr(addr evidence.Addr) uint64 { return uint64(addr) - m.Bias }

// Addr converts an address of the object to one of the process.
func (m *Module) Addr(link uint64) evidence.Addr { return evidence.Addr(link + m.Bias) }
