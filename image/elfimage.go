package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"

	"diagnose/evidence"
	"diagnose/image/object"
)

const (
	pageSize = 4096
	// mostHeaders bounds the program headers of an object; real ones have
	// about a dozen.
	mostHeaders = 128
	// mostNoteSegments bounds the PT_NOTE segments that are read of an object.
	mostNoteSegments = 8
	// canonicalEnd is the first address past user space.
	canonicalEnd = 1 << 47
)

func pageDown(v uint64) uint64 { return v &^ (pageSize - 1) }

// elfImage is what the program headers of a mapped object say.
type elfImage struct {
	kind        elf.Type
	loads       []programHeader
	notes       []programHeader
	tls         *programHeader
	dynamic     uint64 // link-time address of PT_DYNAMIC; 0 for none
	headerTable uint64 // link-time address of PT_PHDR; 0 for none
}

// readELFImage reads the ELF header at addr and the program headers that
// follow it in the same mapping.
func readELFImage(m Memory, addr evidence.Addr) (*elfImage, error) {
	var h [elfHeaderSize]byte
	if _, err := m.ReadMemory(addr, h[:]); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	if !bytes.Equal(h[:4], []byte(elf.ELFMAG)) || h[4] != byte(elf.ELFCLASS64) || h[5] != byte(elf.ELFDATA2LSB) {
		return nil, fmt.Errorf("no ELF header at %v", addr)
	}
	count := int(le.Uint16(h[56:]))
	if le.Uint16(h[54:]) != programHeaderSize || count > mostHeaders {
		return nil, fmt.Errorf("ELF header at %v: %d program headers of %d bytes", addr, count, le.Uint16(h[54:]))
	}
	image, err := readProgramHeaders(m, addr+evidence.Addr(le.Uint64(h[32:])), count)
	if err != nil {
		return nil, err
	}
	image.kind = elf.Type(le.Uint16(h[16:]))
	return image, nil
}

func readProgramHeaders(m Memory, addr evidence.Addr, count int) (*elfImage, error) {
	table := make([]byte, min(max(count, 0), mostHeaders)*programHeaderSize)
	if _, err := m.ReadMemory(addr, table); err != nil {
		return nil, fmt.Errorf("program headers at %v: %w", addr, err)
	}
	image := new(elfImage)
	for ; len(table) > 0; table = table[programHeaderSize:] {
		h := parseProgramHeader(table)
		switch elf.ProgType(h.kind) {
		case elf.PT_LOAD:
			if h.memsz > 0 && h.end() < canonicalEnd {
				image.loads = append(image.loads, h)
			}
		case elf.PT_NOTE:
			image.notes = append(image.notes, h)
		case elf.PT_TLS:
			image.tls = &h
		case elf.PT_DYNAMIC:
			image.dynamic = h.vaddr
		case elf.PT_PHDR:
			image.headerTable = h.vaddr
		}
	}
	return image, nil
}

// imageOfFile is for objects whose headers the core lacks.
func imageOfFile(f *object.File) *elfImage {
	image := &elfImage{kind: elf.Type(f.Type())}
	convert := func(s object.Segment) programHeader {
		return programHeader{kind: uint32(elf.PT_LOAD), flags: s.Flags, offset: s.Offset, vaddr: s.Vaddr,
			filesz: s.Filesz, memsz: s.Memsz}
	}
	for _, s := range f.Segments() {
		if h := convert(s); h.memsz > 0 && h.end() < canonicalEnd {
			image.loads = append(image.loads, h)
		}
	}
	if s, ok := f.TLS(); ok {
		h := convert(s)
		image.tls = &h
	}
	return image
}

// biasFor returns the load bias of the object given that the page at file
// offset is mapped at start.
func (e *elfImage) biasFor(start, offset uint64) (uint64, bool) {
	if e.kind == elf.ET_EXEC {
		return 0, true
	}
	for i := range e.loads {
		if h := &e.loads[i]; pageDown(h.offset) == offset {
			return start - pageDown(h.vaddr), true
		}
	}
	for i := range e.loads {
		if h := &e.loads[i]; offset >= pageDown(h.offset) && offset < addSaturated(h.offset, h.filesz) {
			return start - (pageDown(h.vaddr) + offset - pageDown(h.offset)), true
		}
	}
	return 0, false
}

// covers reports whether a segment of the object, loaded with the bias, maps
// the file's offset at addr.
func (e *elfImage) covers(bias, addr, offset uint64) bool {
	for i := range e.loads {
		h := &e.loads[i]
		low := bias + pageDown(h.vaddr)
		if addr >= low && addr < bias+h.end() && addr-low == offset-pageDown(h.offset) {
			return true
		}
	}
	return false
}

// executable reports whether a segment may be executed.
func (e *elfImage) executable() bool {
	for i := range e.loads {
		if elf.ProgFlag(e.loads[i].flags)&elf.PF_X != 0 {
			return true
		}
	}
	return false
}

// sameSegments compares the loaded segments with a file's.
func (e *elfImage) sameSegments(f *object.File) bool {
	other := imageOfFile(f).loads
	if len(other) != len(e.loads) {
		return false
	}
	for i, h := range e.loads {
		o := other[i]
		if h.vaddr != o.vaddr || h.memsz != o.memsz || h.offset != o.offset || h.filesz != o.filesz || h.flags != o.flags {
			return false
		}
	}
	return true
}

// buildID reads NT_GNU_BUILD_ID from the object's notes in memory.
func (e *elfImage) buildID(m Memory, bias uint64) string {
	const most = 16 << 10
	for _, h := range e.notes[:min(len(e.notes), mostNoteSegments)] {
		b := make([]byte, min(h.filesz, most))
		n, _ := m.ReadMemory(evidence.Addr(bias+h.vaddr), b)
		if id := object.BuildIDNote(b[:n], h.alignm); id != "" {
			return id
		}
	}
	return ""
}
