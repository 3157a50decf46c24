package image

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"sync"

	"diagnose/evidence"
	"diagnose/image/gotable"
	"diagnose/internal/wording"
)

// goFunctions is the Go function table of a module, opened at the first use.
type goFunctions struct {
	once  sync.Once
	table *gotable.Table
	err   error
}

// GoTable returns the module's Go function table; nil without an error when the
// object has no Go code. It is safe for concurrent use.
func (m *Module) GoTable() (*gotable.Table, error) {
	m.goFunctions.once.Do(func() { m.goFunctions.table, m.goFunctions.err = m.openGoTable() })
	return m.goFunctions.table, m.goFunctions.err
}

func (m *Module) openGoTable() (*gotable.Table, error) {
	if m.Object == nil || m.image == nil || m.process == nil {
		return nil, nil
	}
	if len(m.Object.Sections()) == 0 {
		return m.searchGoTable()
	}
	// External linking of a position-independent program gives it the second name.
	for _, name := range []string{".gopclntab", ".data.rel.ro.gopclntab"} {
		if s := m.Object.Section(name); s != nil && s.Addr != 0 {
			return gotable.Open(m.process, m.Addr(s.Addr), m.goDataAreas())
		}
	}
	if m.Object.Section(".go.buildinfo") != nil {
		return nil, errors.New("the program has no section .gopclntab")
	}
	return nil, nil
}

// goDataAreas are the writable parts of the module.
func (m *Module) goDataAreas() []gotable.Area {
	var areas []gotable.Area
	for i := range m.image.loads {
		if h := &m.image.loads[i]; elf.ProgFlag(h.flags)&elf.PF_W != 0 {
			areas = append(areas, gotable.Area{Start: m.Addr(h.vaddr), End: m.Addr(h.end())})
		}
	}
	return areas
}

const (
	// mostGoSearched bounds the memory that is searched, and mostGoHeaders the
	// places in it that look like a table.
	mostGoSearched = 512 << 20
	mostGoHeaders  = 64
)

// searchWords calls match with the address and the bytes of each readable pair
// of words in the areas, until it returns true.
func (m *Module) searchWords(areas []gotable.Area, match func(at evidence.Addr, pair []byte) bool) {
	const step = 1 << 20
	left := mostGoSearched
	for _, a := range areas {
		for at := (a.Start + 15) &^ 15; at < a.End && left > 0; at += step {
			buffer := make([]byte, min(uint64(a.End-at), step))
			left -= len(buffer)
			n, _ := m.process.ReadMemory(at, buffer) // pages that cannot be read do not have it
			for i := 0; i+16 <= n; i += 16 {
				if match(at+evidence.Addr(i), buffer[i:i+16]) {
					return
				}
			}
		}
	}
}

// goHeaderRest follows the first byte of the table's magic number: the other
// three, two zeros, the size of the smallest instruction, that of a pointer.
var goHeaderRest = []byte{0xff, 0xff, 0xff, 0, 0, 1, 8}

// searchGoTable looks for a table in an executable without section headers. A
// place is one only if runtime.firstmoduledata describes it.
func (m *Module) searchGoTable() (table *gotable.Table, err error) {
	if m != m.process.Exe {
		return nil, nil
	}
	var all []gotable.Area
	for i := range m.image.loads {
		h := &m.image.loads[i]
		all = append(all, gotable.Area{Start: m.Addr(h.vaddr), End: m.Addr(h.end())})
	}
	headers := 0
	m.searchWords(all, func(at evidence.Addr, pair []byte) bool {
		for _, offset := range []int{0, 8} {
			if h := pair[offset:]; h[0] < 0xf0 || !bytes.Equal(h[1:8], goHeaderRest) {
				continue
			}
			headers++
			if table, err = gotable.Open(m.process, at+evidence.Addr(offset), m.goDataAreas()); err == nil {
				return true
			}
		}
		return headers >= mostGoHeaders
	})
	if err != nil {
		return nil, fmt.Errorf("the program has no section headers: %w", err)
	}
	return table, nil
}

// goBuildInfo begins the record of the toolchain (debug/buildinfo), and
// goVersionInline is the flag of a record with texts, as Go 1.18 and later make.
var goBuildInfo = []byte("\xff Go buildinf:")

const goVersionInline = 2

// GoVersion returns the version of the toolchain that made the module,
// "go1.26.8". debug/buildinfo needs section headers for some programs.
func (m *Module) GoVersion() (string, error) {
	if m.image == nil || m.process == nil {
		return "", errors.New("the program's headers are not known")
	}
	version := ""
	m.searchWords(m.goDataAreas(), func(at evidence.Addr, pair []byte) bool {
		if !bytes.HasPrefix(pair, goBuildInfo) || pair[15]&goVersionInline == 0 {
			return false
		}
		var text [64]byte // after two words that have no meaning here
		if n, _ := m.process.ReadMemory(at+32, text[:]); n > 0 && int(text[0]) < n {
			version = string(text[1 : 1+text[0]])
		}
		return version != ""
	})
	if version == "" {
		return "", errors.New("the record of the Go toolchain was not found")
	}
	return wording.Name(version), nil
}

// GoFunctionAt returns the Go function at an address of the module; ok is false
// when there is none.
func (m *Module) GoFunctionAt(addr evidence.Addr) (t *gotable.Table, f gotable.Function, ok bool, err error) {
	t, err = m.GoTable()
	if t == nil || err != nil {
		return nil, f, false, err
	}
	f, ok, err = t.FunctionAt(addr)
	return t, f, ok, err
}

// goCallsAt names an address by the Go function table. base is the site without
// names.
func (m *Module) goCallsAt(base evidence.Site, addr evidence.Addr) []SymbolizedCall {
	table, f, ok, err := m.GoFunctionAt(addr)
	if !ok {
		m.tellGo(err)
		return nil
	}
	calls, err := table.CallsAt(&f, addr)
	if err != nil {
		m.tellGo(err)
		calls = []gotable.Call{{Function: f.Name}}
	}
	list := make([]SymbolizedCall, 0, len(calls))
	for _, c := range calls {
		site := base
		site.Function, site.File, site.Line = wording.Name(c.Function), wording.Name(c.File), c.Line
		if !c.Inlined {
			site.FunctionOffset = uint64(base.PC - f.Begin)
		}
		list = append(list, SymbolizedCall{Site: site, Inlined: c.Inlined})
	}
	return list
}

func (m *Module) tellGo(err error) {
	if err != nil {
		m.tellDebugOnce(fmt.Sprintf("the Go function table of %s is damaged, so some names are missing: %v", m.name(), err))
	}
}

// goSymbolAt is the Go function at an address as a symbol.
func (m *Module) goSymbolAt(addr evidence.Addr) (Symbol, bool) {
	_, f, ok, err := m.GoFunctionAt(addr)
	if !ok || err != nil {
		return Symbol{}, false
	}
	return Symbol{Name: wording.Name(f.Name), Addr: f.Begin, Size: uint64(f.End - f.Begin), Module: m}, true
}
