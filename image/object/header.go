package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// Sizes of the structures of the ELF-64 object file format.
const (
	headerSize  = 64
	programSize = 56
	sectionSize = 64
	symbolSize  = 24
	relaSize    = 24
	chdrSize    = 24
)

// maxSections bounds the cost of section headers. Compilers allow a 32-bit
// index; linked objects have less than a thousand.
const maxSections = 1 << 18

// maxSectionName bounds the copies of section names.
const maxSectionName = 255

// program is a program header.
type program struct {
	kind, flags           uint32
	offset, vaddr, filesz uint64
	memsz, align          uint64
}

// parse reads the headers. It is an error only if the file is no x86-64 object
// at all; other defects are stored in f.damage.
func (f *File) parse() error {
	h, ok := f.bytes(0, headerSize)
	if !ok {
		return f.formatError("", 0, "%d bytes are too few for an ELF header", len(f.data))
	}
	if err := f.checkIdent(h); err != nil {
		return err
	}
	le := binary.LittleEndian
	f.kind = le.Uint16(h[16:])
	phoff, shoff := le.Uint64(h[32:]), le.Uint64(h[40:])
	phnum, shnum := uint64(le.Uint16(h[56:])), uint64(le.Uint16(h[60:]))
	names := uint32(le.Uint16(h[62:]))
	if phnum > 0 && le.Uint16(h[54:]) != programSize {
		return f.formatError("", 54, "program headers of %d bytes", le.Uint16(h[54:]))
	}
	if shoff != 0 && le.Uint16(h[58:]) == sectionSize {
		// Section 0 extends the 16-bit counts (gABI, "ELF Header", e_shnum).
		if first, ok := f.bytes(shoff, sectionSize); ok {
			if shnum == 0 {
				shnum = le.Uint64(first[32:])
			}
			if names == uint32(elf.SHN_XINDEX) {
				names = le.Uint32(first[40:])
			}
			if phnum == 0xffff {
				phnum = uint64(le.Uint32(first[44:]))
			}
		}
		f.parseSections(shoff, shnum, names)
	} else if shoff != 0 {
		f.damage = f.formatError("", 58, "section headers of %d bytes", le.Uint16(h[58:]))
	}
	return f.parsePrograms(phoff, phnum)
}

func (f *File) checkIdent(h []byte) error {
	switch {
	case string(h[:4]) != elf.ELFMAG:
		return f.formatError("", 0, "not an ELF object: it starts with %q", h[:4])
	case h[elf.EI_CLASS] != byte(elf.ELFCLASS64) || h[elf.EI_DATA] != byte(elf.ELFDATA2LSB):
		return f.formatError("", elf.EI_CLASS, "not a little-endian 64-bit object")
	case h[elf.EI_VERSION] != byte(elf.EV_CURRENT):
		return f.formatError("", elf.EI_VERSION, "ELF version %d", h[elf.EI_VERSION])
	}
	if m := elf.Machine(binary.LittleEndian.Uint16(h[18:])); m != elf.EM_X86_64 {
		return f.formatError("", 18, "an object for %v, not for x86-64", m)
	}
	switch t := elf.Type(binary.LittleEndian.Uint16(h[16:])); t {
	case elf.ET_REL, elf.ET_EXEC, elf.ET_DYN:
		return nil
	case elf.ET_CORE:
		return f.formatError("", 16, "a core file, not an object")
	default:
		return f.formatError("", 16, "unknown object type %d", uint16(t))
	}
}

func (f *File) parsePrograms(offset, count uint64) error {
	table, ok := f.bytes(offset, count*programSize)
	if !ok {
		return f.formatError("", offset, "%d program headers reach past the end of the file at %#x", count, len(f.data))
	}
	le := binary.LittleEndian
	f.programs = make([]program, count)
	for i := range f.programs {
		b := table[i*programSize:]
		p := program{
			kind: le.Uint32(b), flags: le.Uint32(b[4:]),
			offset: le.Uint64(b[8:]), vaddr: le.Uint64(b[16:]),
			filesz: le.Uint64(b[32:]), memsz: le.Uint64(b[40:]), align: le.Uint64(b[48:]),
		}
		f.programs[i] = p
		if p.kind == uint32(elf.PT_LOAD) {
			f.loads = append(f.loads, p.segment())
		}
	}
	return nil
}

func (f *File) parseSections(offset, count uint64, names uint32) {
	if count > maxSections {
		f.damage = f.formatError("", offset, "%d section headers", count)
		return
	}
	table, ok := f.bytes(offset, count*sectionSize)
	if !ok {
		f.damage = f.formatError("", offset, "%d section headers reach past the end of the file at %#x", count, len(f.data))
		return
	}
	le := binary.LittleEndian
	f.sections = make([]Section, count)
	for i := range f.sections {
		b := table[i*sectionSize:]
		s := &f.sections[i]
		s.file, s.index = f, i
		s.Type, s.Flags = le.Uint32(b[4:]), le.Uint64(b[8:])
		s.Addr, s.Offset, s.Size = le.Uint64(b[16:]), le.Uint64(b[24:]), le.Uint64(b[32:])
		s.rawSize, s.link, s.entrySize = s.Size, le.Uint32(b[40:]), le.Uint64(b[56:])
		if s.Type == uint32(elf.SHT_NOBITS) && s.Flags&uint64(elf.SHF_EXECINSTR) != 0 {
			f.hollow = true
		}
	}
	f.nameSections(table, names)
}

func (f *File) nameSections(table []byte, names uint32) {
	if int64(names) >= int64(len(f.sections)) {
		f.damage = f.formatError("", 62, "section names are in section %d of %d", names, len(f.sections))
		return
	}
	strings, err := f.sections[names].stored()
	if err != nil {
		f.damage = err
		return
	}
	for i := range f.sections {
		s := &f.sections[i]
		s.Name = sectionName(strings, binary.LittleEndian.Uint32(table[i*sectionSize:]))
		s.findPacking()
	}
}

func sectionName(table []byte, offset uint32) string {
	if uint64(offset) >= uint64(len(table)) {
		return ""
	}
	b := table[offset:]
	b = b[:min(len(b), maxSectionName)]
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	return string(b)
}
