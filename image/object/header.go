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

// headers are the ELF, program and section headers of an object.
type headers struct {
	file     *contents
	kind     uint16
	programs []program
	loads    []Segment
	sections []Section
	// hollow: a debug file whose loaded sections have headers but no bytes.
	hollow bool
	// damage describes parts that Open could not read and does not need.
	damage error
}

// Type returns elf.ET_EXEC, elf.ET_DYN, ...
func (h *headers) Type() uint16 { return h.kind }

// Damage describes the headers that could not be read, such as a section table
// past the end of a truncated file; nil for a sound object.
func (h *headers) Damage() error { return h.damage }

// parse reads the headers. It is an error only if the file is no x86-64 object
// at all; other defects are stored in h.damage.
func (h *headers) parse() error {
	ident, ok := h.file.bytes(0, headerSize)
	if !ok {
		return h.file.formatError("", 0, "%d bytes are too few for an ELF header", len(h.file.data))
	}
	if err := h.checkIdent(ident); err != nil {
		return err
	}
	le := binary.LittleEndian
	h.kind = le.Uint16(ident[16:])
	phoff, shoff := le.Uint64(ident[32:]), le.Uint64(ident[40:])
	phnum, shnum := uint64(le.Uint16(ident[56:])), uint64(le.Uint16(ident[60:]))
	names := uint32(le.Uint16(ident[62:]))
	if phnum > 0 && le.Uint16(ident[54:]) != programSize {
		return h.file.formatError("", 54, "program headers of %d bytes", le.Uint16(ident[54:]))
	}
	if shoff != 0 && le.Uint16(ident[58:]) == sectionSize {
		// Section 0 extends the 16-bit counts (gABI, "ELF Header", e_shnum).
		if first, ok := h.file.bytes(shoff, sectionSize); ok {
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
		h.parseSections(shoff, shnum, names)
	} else if shoff != 0 {
		h.damage = h.file.formatError("", 58, "section headers of %d bytes", le.Uint16(ident[58:]))
	}
	return h.parsePrograms(phoff, phnum)
}

func (h *headers) checkIdent(ident []byte) error {
	switch {
	case string(ident[:4]) != elf.ELFMAG:
		return h.file.formatError("", 0, "not an ELF object: it starts with %q", ident[:4])
	case ident[elf.EI_CLASS] != byte(elf.ELFCLASS64) || ident[elf.EI_DATA] != byte(elf.ELFDATA2LSB):
		return h.file.formatError("", elf.EI_CLASS, "not a little-endian 64-bit object")
	case ident[elf.EI_VERSION] != byte(elf.EV_CURRENT):
		return h.file.formatError("", elf.EI_VERSION, "ELF version %d", ident[elf.EI_VERSION])
	}
	if m := elf.Machine(binary.LittleEndian.Uint16(ident[18:])); m != elf.EM_X86_64 {
		return h.file.formatError("", 18, "an object for %v, not for x86-64", m)
	}
	switch t := elf.Type(binary.LittleEndian.Uint16(ident[16:])); t {
	case elf.ET_REL, elf.ET_EXEC, elf.ET_DYN:
		return nil
	case elf.ET_CORE:
		return h.file.formatError("", 16, "a core file, not an object")
	default:
		return h.file.formatError("", 16, "unknown object type %d", uint16(t))
	}
}

func (h *headers) parsePrograms(offset, count uint64) error {
	table, ok := h.file.bytes(offset, count*programSize)
	if !ok {
		return h.file.formatError("", offset, "%d program headers reach past the end of the file at %#x", count, len(h.file.data))
	}
	le := binary.LittleEndian
	h.programs = make([]program, count)
	for i := range h.programs {
		b := table[i*programSize:]
		p := program{
			kind: le.Uint32(b), flags: le.Uint32(b[4:]),
			offset: le.Uint64(b[8:]), vaddr: le.Uint64(b[16:]),
			filesz: le.Uint64(b[32:]), memsz: le.Uint64(b[40:]), align: le.Uint64(b[48:]),
		}
		h.programs[i] = p
		if p.kind == uint32(elf.PT_LOAD) {
			h.loads = append(h.loads, p.segment())
		}
	}
	return nil
}

func (h *headers) parseSections(offset, count uint64, names uint32) {
	if count > maxSections {
		h.damage = h.file.formatError("", offset, "%d section headers", count)
		return
	}
	table, ok := h.file.bytes(offset, count*sectionSize)
	if !ok {
		h.damage = h.file.formatError("", offset, "%d section headers reach past the end of the file at %#x", count, len(h.file.data))
		return
	}
	le := binary.LittleEndian
	h.sections = make([]Section, count)
	for i := range h.sections {
		b := table[i*sectionSize:]
		s := &h.sections[i]
		s.file, s.table, s.index = h.file, h.sections, i
		s.Type, s.Flags = le.Uint32(b[4:]), le.Uint64(b[8:])
		s.Addr, s.Offset, s.Size = le.Uint64(b[16:]), le.Uint64(b[24:]), le.Uint64(b[32:])
		s.rawSize, s.link, s.entrySize = s.Size, le.Uint32(b[40:]), le.Uint64(b[56:])
		if s.Type == uint32(elf.SHT_NOBITS) && s.Flags&uint64(elf.SHF_EXECINSTR) != 0 {
			h.hollow = true
		}
	}
	h.nameSections(table, names)
}

func (h *headers) nameSections(table []byte, names uint32) {
	if int64(names) >= int64(len(h.sections)) {
		h.damage = h.file.formatError("", 62, "section names are in section %d of %d", names, len(h.sections))
		return
	}
	strings, err := h.sections[names].stored()
	if err != nil {
		h.damage = err
		return
	}
	for i := range h.sections {
		s := &h.sections[i]
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
