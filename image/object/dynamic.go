package object

import (
	"debug/elf"
	"encoding/binary"
)

// dynamicTable finds the dynamic symbols by PT_DYNAMIC alone, as the loader
// does, for objects whose section headers were stripped.
func (l *symbols) dynamicTable() *symbolTable {
	tags := l.dynamicTags()
	var hash hashTable
	count := 0
	if b := l.loadedOrNil(tags[elf.DT_GNU_HASH]); b != nil {
		if h, ok := newGNUHash(b).(gnuHash); ok {
			hash, count = h, h.end()
		}
	}
	if b := l.loadedOrNil(tags[elf.DT_HASH]); b != nil && hash == nil {
		if h, ok := newSysvHash(b).(sysvHash); ok {
			hash, count = h, h.end()
		}
	}
	symbols, names := l.loadedOrNil(tags[elf.DT_SYMTAB]), l.loadedOrNil(tags[elf.DT_STRTAB])
	count = min(count, len(symbols)/symbolSize)
	if count == 0 || names == nil {
		return nil
	}
	names = names[:min(uint64(len(names)), tags[elf.DT_STRSZ])]
	t := newSymbolTable(symbols[:count*symbolSize], names)
	t.hash = hash
	if b := l.loadedOrNil(tags[elf.DT_VERSYM]); len(b) >= 2*count {
		t.versions = b[:2*count]
	}
	return t
}

// dynamicTags returns the first value of each tag up to DT_NULL.
func (l *symbols) dynamicTags() map[elf.DynTag]uint64 {
	tags := make(map[elf.DynTag]uint64)
	p, ok := l.headers.Program(elf.PT_DYNAMIC)
	if !ok {
		return tags
	}
	b, ok := l.headers.file.bytes(p.Offset, p.Filesz)
	if !ok {
		return tags
	}
	// Real tables have about thirty entries.
	const most = 1024
	for i := 0; i < most && len(b) >= 16; i++ {
		tag := elf.DynTag(binary.LittleEndian.Uint64(b))
		if tag == elf.DT_NULL {
			break
		}
		if _, known := tags[tag]; !known {
			tags[tag] = binary.LittleEndian.Uint64(b[8:])
		}
		b = b[16:]
	}
	return tags
}

func (l *symbols) loadedOrNil(vaddr uint64) []byte {
	if vaddr == 0 {
		return nil
	}
	b, err := l.headers.loadedAt(vaddr)
	if err != nil {
		return nil
	}
	return b
}
