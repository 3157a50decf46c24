package image

import (
	"fmt"
	"path/filepath"
	"sort"
	"sync"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
	"diagnose/image/object"
)

// Module is an object mapped into a process.
type Module struct {
	// Path as the process had it; File is what was opened for it, "" if
	// nothing was.
	Path, File string
	// BuildID is what the process's memory says, or the file if memory has
	// lost it.
	BuildID string
	// Bias is what to add to the object's link-time addresses.
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
	// ranges are the mappings and the .bss behind them, in address order.
	ranges []addrRange
	image  *elfImage
	// fileStart is where the file's fileOffset is mapped.
	fileStart  evidence.Addr
	fileOffset uint64

	debugOnce sync.Once
	debugFile *object.File
	debug     *debuginfo.Info
	debugErr  error
	// toldDebug and toldOther keep limits to one a module.
	toldDebug, toldOther sync.Once
}

type addrRange struct{ start, end evidence.Addr }

// Contains reports whether addr lies in one of the module's mappings.
func (m *Module) Contains(addr evidence.Addr) bool {
	if m.ranges == nil {
		return addr >= m.Start && addr < m.End
	}
	i := sort.Search(len(m.ranges), func(i int) bool { return m.ranges[i].end > addr })
	return i < len(m.ranges) && addr >= m.ranges[i].start
}

// name is the module's name in sentences.
func (m *Module) name() string { return filepath.Base(m.Path) }

// Debug returns the module's DWARF, opened at the first call; nil without an
// error when there is none. It is safe for concurrent use.
func (m *Module) Debug() (*debuginfo.Info, error) {
	m.debugOnce.Do(func() {
		if m.Object == nil {
			return
		}
		if err := m.openDebug(); err != nil {
			m.debugErr = fmt.Errorf("debug information of %s: %w", m.name(), err)
		}
	})
	return m.debug, m.debugErr
}

func (m *Module) openDebug() error {
	finder := new(object.Finder)
	if m.process != nil {
		finder = &m.process.options.Finder
	}
	file, err := finder.Debug(m.Object)
	if file == nil {
		return err
	}
	m.debugFile = file
	m.Object.AddSymbols(file)
	if !file.HasDWARF() {
		return err
	}
	m.debug, err = debuginfo.Open(file, finder)
	return err
}

// DebugFile returns the separate file that Debug took the DWARF from, ""
// when it was in the object itself or there is none.
func (m *Module) DebugFile() string {
	if _, err := m.Debug(); err != nil && m.debugFile == nil {
		return ""
	}
	if m.debugFile == nil || m.debugFile == m.Object {
		return ""
	}
	return m.debugFile.Path()
}

// DebugObject returns the object that Debug took the DWARF from, which may be
// the module's own; nil when there is none.
func (m *Module) DebugObject() *object.File {
	// The file may hold what is asked of it although its DWARF is damaged.
	_, _ = m.Debug()
	return m.debugFile
}

// LinkAddr turns an address of the process into one of the object.
func (m *Module) LinkAddr(addr evidence.Addr) uint64 { return uint64(addr) - m.Bias }

// Addr turns an address of the object into one of the process.
func (m *Module) Addr(link uint64) evidence.Addr { return evidence.Addr(link + m.Bias) }
