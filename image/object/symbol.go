package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// SymbolKind is the kind of a symbol.
type SymbolKind uint8

// The symbol kinds that the analysis distinguishes. SymbolFunc includes
// STT_GNU_IFUNC, whose value is the resolver.
const (
	SymbolOther SymbolKind = iota
	SymbolFunc
	SymbolObject
	SymbolTLS // Value is an offset in the object's thread-local block
)

// Symbol is a defined ELF symbol, its name without any @VERSION.
type Symbol struct {
	Name  string
	Value uint64 // link-time address
	Size  uint64
	Kind  SymbolKind
	// Synthetic symbols were made by this package for PLT stubs ("read@plt")
	// and words of the global offset table ("read@got.plt").
	Synthetic bool
}

// maxSymbolName bounds the copies of symbol names. Mangled names of nested
// C++ templates reach some ten thousand bytes.
const maxSymbolName = 1 << 16

// rawSymbol is an Elf64_Sym.
type rawSymbol struct {
	name        uint32
	info        byte
	section     uint16
	value, size uint64
}

func (s *rawSymbol) kind() elf.SymType { return elf.ST_TYPE(s.info) }

// defined reports whether the symbol has an address: it is neither an import
// nor a plain number.
func (s *rawSymbol) defined() bool {
	return s.section != uint16(elf.SHN_UNDEF) && s.section != uint16(elf.SHN_ABS) && s.section != uint16(elf.SHN_COMMON)
}

// addressable reports whether the symbol names code or data at its value.
func (s *rawSymbol) addressable() bool {
	if !s.defined() || s.name == 0 {
		return false
	}
	switch s.kind() {
	case elf.STT_NOTYPE, elf.STT_OBJECT, elf.STT_FUNC, elf.STT_GNU_IFUNC:
		return true
	}
	return false
}

// strength orders symbols of the same name, as the linker would.
func (s *rawSymbol) strength() int {
	switch elf.ST_BIND(s.info) {
	case elf.STB_LOCAL:
		return 1
	case elf.STB_WEAK:
		return 2
	}
	return 3
}

func (s *rawSymbol) symbolKind() SymbolKind {
	switch s.kind() {
	case elf.STT_FUNC, elf.STT_GNU_IFUNC:
		return SymbolFunc
	case elf.STT_OBJECT, elf.STT_COMMON:
		return SymbolObject
	case elf.STT_TLS:
		return SymbolTLS
	}
	return SymbolOther
}

// symbolTable is an ELF symbol table, read in place.
type symbolTable struct {
	symbols, names []byte
	// shift is added to values: the distance between an object and a debug
	// file that was made before prelink(8) moved the object.
	shift uint64
	// separate: the table is not the object's own.
	separate bool
	// hash finds names of a dynamic table; nil without one. versions is
	// .gnu.version, one half-word a symbol.
	hash     hashTable
	versions []byte
	index    func() *addressIndex
}

func (t *symbolTable) count() int { return len(t.symbols) / symbolSize }

func (t *symbolTable) symbolAt(i int) rawSymbol {
	b := t.symbols[i*symbolSize:][:symbolSize]
	return rawSymbol{
		name: binary.LittleEndian.Uint32(b), info: b[4], section: binary.LittleEndian.Uint16(b[6:]),
		value: binary.LittleEndian.Uint64(b[8:]), size: binary.LittleEndian.Uint64(b[16:]),
	}
}

// rawName returns the name in place, without its version.
func (t *symbolTable) rawName(s *rawSymbol) []byte {
	if uint64(s.name) >= uint64(len(t.names)) {
		return nil
	}
	b := t.names[s.name:]
	b = b[:min(len(b), maxSymbolName)]
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		return nil
	}
	b = b[:end]
	if at := bytes.IndexByte(b, '@'); at > 0 {
		b = b[:at]
	}
	return b
}

// hasName compares in place; t.names holds name or name@VERSION there.
func (t *symbolTable) hasName(s *rawSymbol, name string) bool {
	start, end := uint64(s.name), uint64(s.name)+uint64(len(name))
	if end >= uint64(len(t.names)) || string(t.names[start:end]) != name {
		return false
	}
	return t.names[end] == 0 || t.names[end] == '@'
}

func (t *symbolTable) symbol(s *rawSymbol) Symbol {
	value := s.value
	if s.kind() != elf.STT_TLS {
		value += t.shift
	}
	return Symbol{Name: string(t.rawName(s)), Value: value, Size: s.size, Kind: s.symbolKind()}
}

// named returns the strongest symbol of a name.
func (t *symbolTable) named(name string) (Symbol, bool) {
	if t == nil || name == "" {
		return Symbol{}, false
	}
	if t.hash != nil {
		return t.hashed(name)
	}
	// A search of the string table alone excludes most missing names.
	if !bytes.Contains(t.names, []byte(name)) {
		return Symbol{}, false
	}
	var best rawSymbol
	strength := 0
	for i := range t.count() {
		s := t.symbolAt(i)
		if s.defined() && t.isName(&s) && t.hasName(&s, name) && s.strength() > strength {
			best, strength = s, s.strength()
		}
	}
	if strength == 0 {
		return Symbol{}, false
	}
	return t.symbol(&best), true
}

// isName leaves out the symbols that stand for sections and source files.
func (t *symbolTable) isName(s *rawSymbol) bool {
	return s.name != 0 && s.kind() != elf.STT_SECTION && s.kind() != elf.STT_FILE
}

// hashed is named for tables with a hash: the default version of a symbol
// (bit 15 of .gnu.version clear) before hidden ones.
func (t *symbolTable) hashed(name string) (Symbol, bool) {
	var best rawSymbol
	score := 0
	t.hash.visitNamed(name, t.count(), func(i int) {
		s := t.symbolAt(i)
		if !s.defined() || !t.isName(&s) || !t.hasName(&s, name) {
			return
		}
		this := s.strength()
		if 2*i+2 > len(t.versions) || binary.LittleEndian.Uint16(t.versions[2*i:])&0x8000 == 0 {
			this += 4
		}
		if this > score {
			best, score = s, this
		}
	})
	if score == 0 {
		return Symbol{}, false
	}
	return t.symbol(&best), true
}
