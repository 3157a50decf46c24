package agent

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// checkAllocator warns of a program that brings a malloc of its own: what the
// program defines comes before anything that is preloaded. An allocator in a
// library (libjemalloc.so) does not, and is replaced.
func (t *Target) checkAllocator(f *elf.File) error {
	own, err := definesMalloc(f)
	if err != nil {
		return fmt.Errorf("%s: %w", t.File, err)
	}
	if own {
		t.Warnings = append(t.Warnings, fmt.Sprintf("%s has a malloc of its own linked into it, so there will be no evidence about its heap", t.File))
	}
	return nil
}

// definesMalloc looks into both symbol tables: an allocator that is linked in
// statically need not be exported.
func definesMalloc(f *elf.File) (bool, error) {
	for _, s := range f.Sections {
		if s.Type != elf.SHT_SYMTAB && s.Type != elf.SHT_DYNSYM {
			continue
		}
		if int(s.Link) >= len(f.Sections) {
			return false, fmt.Errorf("section %s has its names in section %d of %d", s.Name, s.Link, len(f.Sections))
		}
		symbols, err := s.Data()
		if err != nil {
			return false, fmt.Errorf("section %s: %w", s.Name, err)
		}
		names, err := f.Sections[s.Link].Data()
		if err != nil {
			return false, fmt.Errorf("section %s: %w", f.Sections[s.Link].Name, err)
		}
		if definesFunction(symbols, names, "malloc\x00") {
			return true, nil
		}
	}
	return false, nil
}

// definesFunction reads Elf64_Sym by itself: debug/elf would make a string of
// every name of a large program.
func definesFunction(symbols, names []byte, name string) bool {
	for ; len(symbols) >= elf.Sym64Size; symbols = symbols[elf.Sym64Size:] {
		at := uint64(binary.LittleEndian.Uint32(symbols))
		if at+uint64(len(name)) > uint64(len(names)) || string(names[at:at+uint64(len(name))]) != name {
			continue
		}
		defined := elf.SectionIndex(binary.LittleEndian.Uint16(symbols[6:])) != elf.SHN_UNDEF
		if kind := elf.ST_TYPE(symbols[4]); defined && (kind == elf.STT_FUNC || kind == elf.STT_GNU_IFUNC) {
			return true
		}
	}
	return false
}
