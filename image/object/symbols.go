package object

import (
	"bytes"
	"debug/elf"
	"strings"
	"sync"
)

// ownSymbols are the tables that the object itself holds.
type ownSymbols struct {
	static, dynamic *symbolTable // nil when absent
}

func (f *File) findSymbols() (own ownSymbols) {
	// Tables that cannot be read because of a fault have no symbols.
	_ = f.guard("", func() {
		own.static = f.tableOf(elf.SHT_SYMTAB)
		own.dynamic = f.tableOf(elf.SHT_DYNSYM)
		switch {
		case own.dynamic != nil:
			f.hashSections(own.dynamic)
		case len(f.sections) == 0:
			own.dynamic = f.dynamicTable()
		}
	})
	return own
}

func newSymbolTable(symbols, names []byte) *symbolTable {
	t := &symbolTable{symbols: symbols, names: names}
	t.index = sync.OnceValue(t.buildIndex)
	return t
}

// tableOf returns the symbol table in the first section of a type, nil if
// there is none or it has no contents in this file.
func (f *File) tableOf(kind elf.SectionType) *symbolTable {
	s := f.sectionOfType(kind)
	if s == nil || s.linked() == nil {
		return nil
	}
	symbols, err := s.Data()
	if err != nil || len(symbols) < symbolSize {
		return nil
	}
	names, err := s.linked().Data()
	if err != nil {
		return nil
	}
	return newSymbolTable(symbols, names)
}

func (f *File) hashSections(t *symbolTable) {
	if s := f.sectionOfType(elf.SHT_GNU_HASH); s != nil {
		if b, err := s.Data(); err == nil {
			t.hash = newGNUHash(b)
		}
	}
	if s := f.sectionOfType(elf.SHT_HASH); s != nil && t.hash == nil {
		if b, err := s.Data(); err == nil {
			t.hash = newSysvHash(b)
		}
	}
	if s := f.sectionOfType(elf.SHT_GNU_VERSYM); s != nil {
		t.versions, _ = s.Data()
	}
}

// AddSymbols adds the symbols of f's separate debug file to f's own. debug
// must stay open as long as f.
func (f *File) AddSymbols(debug *File) {
	if debug == nil || debug == f {
		return
	}
	static := debug.own().static
	if static == nil {
		return
	}
	table := newSymbolTable(static.symbols, static.names)
	table.separate, table.shift = true, f.shiftOf(debug)
	f.attach.Lock()
	defer f.attach.Unlock()
	tables := append([]*symbolTable{}, f.attachedTables()...)
	tables = append(tables, table)
	f.attached.Store(&tables)
}

// shiftOf returns the distance to add to the addresses of a debug file made
// before prelink(8) moved the object. Segments cannot tell it, because patchelf
// inserts new ones in front.
func (f *File) shiftOf(debug *File) uint64 {
	moved, from := f.Section(".text"), debug.Section(".text")
	if moved == nil || from == nil {
		return 0
	}
	return moved.Addr - from.Addr
}

func (f *File) attachedTables() []*symbolTable {
	if tables := f.attached.Load(); tables != nil {
		return *tables
	}
	return nil
}

// SymbolAt returns the function or object symbol that covers the link-time
// address: the innermost one whose [Value, Value+Size) holds it, else the
// nearest preceding sizeless one in the same section, if no sized one starts
// between. Among several with the same value it takes the name that is last
// in byte order, whatever its binding, as gdb does: "write" before "__write";
// but the object's own tables before separate ones.
// Symbol tables are .symtab, .dynsym, those of AddSymbols, and, for an
// address that these do not cover, that of .gnu_debugdata; and, made from the
// relocations, PLT stubs ("read@plt") and their words of the global offset
// table ("read@got.plt").
// An address in a file truncated meanwhile has no symbol.
func (f *File) SymbolAt(vaddr uint64) (s Symbol, ok bool) {
	if f.guard("", func() { s, ok = f.symbolAt(vaddr) }) != nil {
		return Symbol{}, false
	}
	return s, ok
}

func (f *File) symbolAt(vaddr uint64) (Symbol, bool) {
	section := f.SectionAt(vaddr)
	if section != nil {
		if s, ok := f.linkageAt(section, vaddr); ok {
			return s, true
		}
	}
	own := f.own()
	var best match
	for _, t := range append([]*symbolTable{own.static, own.dynamic}, f.attachedTables()...) {
		if t != nil {
			best = best.merge(t.lookup(vaddr))
		}
	}
	if !best.hasCover && own.static == nil && len(f.attachedTables()) == 0 {
		if t := f.mini(); t != nil {
			best = best.merge(t.lookup(vaddr))
		}
	}
	switch {
	case best.hasCover:
		return best.table.symbol(&best.cover), true
	case best.hasMark && f.SectionAt(best.mark.value+best.table.shift) == section:
		return best.table.symbol(&best.mark), true
	}
	return Symbol{}, false
}

// linkageAt names a PLT stub or a word of the global offset table.
func (f *File) linkageAt(section *Section, vaddr uint64) (Symbol, bool) {
	switch {
	case strings.HasPrefix(section.Name, ".plt"):
		return f.links().stubAt(vaddr)
	case strings.HasPrefix(section.Name, ".got"):
		return f.links().wordAt(vaddr)
	}
	return Symbol{}, false
}

// merge returns the better of two tables' matches for the same address.
func (m match) merge(o match) match {
	switch {
	case m.table == nil:
		return o
	case m.hasCover != o.hasCover:
		if o.hasCover {
			return o
		}
		return m
	case m.hasCover:
		return later(m, o, m.cover, o.cover)
	}
	best := m
	if o.hasMark && (!m.hasMark || later(m, o, m.mark, o.mark).table == o.table) {
		best = o
	}
	best.hasSized = m.hasSized || o.hasSized
	best.sized = max(m.sized, o.sized)
	best.hasMark = best.hasMark && (!best.hasSized || best.mark.value+best.table.shift > best.sized)
	return best
}

// later returns the match whose symbol starts later. Of equal starts, one in
// the object itself goes before one in a separate table (gdb's minsyms.c,
// lookup_minimal_symbol_by_pc_section, takes the first file's: "wcschr", not
// "wcschr_ifunc"), then the name that sorts last.
func later(m, o match, a, b rawSymbol) match {
	start, other := a.value+m.table.shift, b.value+o.table.shift
	if other != start {
		if other > start {
			return o
		}
		return m
	}
	if !o.table.separate && bytes.Compare(o.table.rawName(&b), m.table.rawName(&a)) > 0 {
		return o
	}
	return m
}

// SymbolNamed returns the symbol with exactly this (mangled, unversioned)
// name: of several the default version, and global before weak before local.
// Tables are searched in the order .dynsym, .symtab, those of AddSymbols,
// .gnu_debugdata. "read@plt" names a PLT stub.
func (f *File) SymbolNamed(name string) (s Symbol, ok bool) {
	if f.guard("", func() { s, ok = f.symbolNamed(name) }) != nil {
		return Symbol{}, false
	}
	return s, ok
}

func (f *File) symbolNamed(name string) (Symbol, bool) {
	if strings.HasSuffix(name, "@plt") {
		return f.links().stubNamed(name)
	}
	own := f.own()
	for _, t := range append([]*symbolTable{own.dynamic, own.static}, f.attachedTables()...) {
		if s, ok := t.named(name); ok {
			return s, true
		}
	}
	if own.static == nil && len(f.attachedTables()) == 0 {
		return f.mini().named(name)
	}
	return Symbol{}, false
}

// SymbolSource says where symbols come from: "symtab" (the object's own or
// that of AddSymbols), "minidebuginfo", "dynsym", "none".
func (f *File) SymbolSource() string {
	own := f.own()
	switch {
	case own.static != nil || len(f.attachedTables()) > 0:
		return "symtab"
	case f.Section(miniSection) != nil:
		return "minidebuginfo"
	case own.dynamic != nil:
		return "dynsym"
	}
	return "none"
}
