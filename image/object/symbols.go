package object

import (
	"bytes"
	"debug/elf"
	"strings"
	"sync"
	"sync/atomic"
)

// ownSymbols are the tables that the object itself holds.
type ownSymbols struct {
	static, dynamic *symbolTable // nil when absent
}

// symbols are all symbols of an object: its own, those of its MiniDebugInfo, those
// made from relocations, and those of a separate debug file.
type symbols struct {
	headers  *headers
	own      func() ownSymbols
	links    func() *linkage
	mini     func() *symbolTable
	attached atomic.Pointer[[]*symbolTable]
	attach   sync.Mutex
}

// prepare sets up the tables of an object, which are read on demand.
func (l *symbols) prepare(h *headers) {
	l.headers = h
	l.own = sync.OnceValue(l.findOwn)
	l.links = sync.OnceValue(l.findLinkage)
	l.mini = sync.OnceValue(l.findMini)
}

func (l *symbols) findOwn() (own ownSymbols) {
	// Tables that cannot be read because of a fault have no symbols.
	_ = l.headers.file.guard("", func() {
		own.static = l.tableOf(elf.SHT_SYMTAB)
		own.dynamic = l.tableOf(elf.SHT_DYNSYM)
		switch {
		case own.dynamic != nil:
			l.hashSections(own.dynamic)
		case len(l.headers.sections) == 0:
			own.dynamic = l.dynamicTable()
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
func (l *symbols) tableOf(kind elf.SectionType) *symbolTable {
	s := l.headers.sectionOfType(kind)
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

func (l *symbols) hashSections(t *symbolTable) {
	if s := l.headers.sectionOfType(elf.SHT_GNU_HASH); s != nil {
		if b, err := s.Data(); err == nil {
			t.hash = newGNUHash(b)
		}
	}
	if s := l.headers.sectionOfType(elf.SHT_HASH); s != nil && t.hash == nil {
		if b, err := s.Data(); err == nil {
			t.hash = newSysvHash(b)
		}
	}
	if s := l.headers.sectionOfType(elf.SHT_GNU_VERSYM); s != nil {
		t.versions, _ = s.Data()
	}
}

// addDebug adds the static symbols of the separate debug file.
func (l *symbols) addDebug(debug *symbols) {
	static := debug.own().static
	if static == nil {
		return
	}
	table := newSymbolTable(static.symbols, static.names)
	table.separate, table.shift = true, l.shiftOf(debug.headers)
	l.attach.Lock()
	defer l.attach.Unlock()
	tables := append([]*symbolTable{}, l.attachedTables()...)
	tables = append(tables, table)
	l.attached.Store(&tables)
}

// shiftOf returns the distance to add to the addresses of a debug file made
// before prelink(8) moved the object. Segments cannot tell it, because patchelf
// inserts new ones in front.
func (l *symbols) shiftOf(debug *headers) uint64 {
	moved, from := l.headers.Section(".text"), debug.Section(".text")
	if moved == nil || from == nil {
		return 0
	}
	return moved.Addr - from.Addr
}

func (l *symbols) attachedTables() []*symbolTable {
	if tables := l.attached.Load(); tables != nil {
		return *tables
	}
	return nil
}

// covering looks up the symbol that covers an address: see File.SymbolAt.
func (l *symbols) covering(vaddr uint64) (Symbol, bool) {
	section := l.headers.SectionAt(vaddr)
	if section != nil {
		if s, ok := l.linkageAt(section, vaddr); ok {
			return s, true
		}
	}
	own := l.own()
	var best match
	for _, t := range append([]*symbolTable{own.static, own.dynamic}, l.attachedTables()...) {
		if t != nil {
			best = best.merge(t.lookup(vaddr))
		}
	}
	if !best.hasCover && own.static == nil && len(l.attachedTables()) == 0 {
		if t := l.mini(); t != nil {
			best = best.merge(t.lookup(vaddr))
		}
	}
	switch {
	case best.hasCover:
		return best.table.symbol(&best.cover), true
	case best.hasMark && l.headers.SectionAt(best.mark.value+best.table.shift) == section:
		return best.table.symbol(&best.mark), true
	}
	return Symbol{}, false
}

// linkageAt names a PLT stub or a word of the global offset table.
func (l *symbols) linkageAt(section *Section, vaddr uint64) (Symbol, bool) {
	switch {
	case strings.HasPrefix(section.Name, ".plt"):
		return l.links().stubAt(vaddr)
	case strings.HasPrefix(section.Name, ".got"):
		return l.links().wordAt(vaddr)
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

// named looks up a symbol by its name: see File.SymbolNamed.
func (l *symbols) named(name string) (Symbol, bool) {
	if strings.HasSuffix(name, "@plt") {
		return l.links().stubNamed(name)
	}
	own := l.own()
	for _, t := range append([]*symbolTable{own.dynamic, own.static}, l.attachedTables()...) {
		if s, ok := t.named(name); ok {
			return s, true
		}
	}
	if own.static == nil && len(l.attachedTables()) == 0 {
		return l.mini().named(name)
	}
	return Symbol{}, false
}

// source says where symbols come from: see File.SymbolSource.
func (l *symbols) source() string {
	own := l.own()
	switch {
	case own.static != nil || len(l.attachedTables()) > 0:
		return "symtab"
	case l.headers.Section(miniSection) != nil:
		return "minidebuginfo"
	case own.dynamic != nil:
		return "dynsym"
	}
	return "none"
}

func (l *symbols) threadLocalAt(offset uint64) (Symbol, bool) {
	own := l.own()
	for _, t := range append([]*symbolTable{own.static, own.dynamic}, l.attachedTables()...) {
		if t == nil {
			continue
		}
		for i := range t.count() {
			raw := t.symbolAt(i)
			if raw.symbolKind() == SymbolTLS && raw.defined() && offset >= raw.value && offset-raw.value < max(raw.size, 1) {
				return t.symbol(&raw), true
			}
		}
	}
	return Symbol{}, false
}
