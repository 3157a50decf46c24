package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math"
	"sort"

	"diagnose/image/object"
)

const (
	elfHeaderSize     = 64
	programHeaderSize = 56
	sectionHeaderSize = 64
	// extendedNumbering in e_phnum says that sh_info of section header 0
	// holds the number (PN_XNUM, linux/elf.h).
	extendedNumbering = 0xffff
)

// programHeader is an Elf64_Phdr.
type programHeader struct {
	kind, flags                          uint32
	offset, vaddr, filesz, memsz, alignm uint64
}

// end is the first address past the segment; it saturates.
func (h *programHeader) end() uint64 { return addSaturated(h.vaddr, h.memsz) }

func addSaturated(a, b uint64) uint64 {
	if a+b < a {
		return math.MaxUint64
	}
	return a + b
}

func parseProgramHeader(b []byte) programHeader {
	le := binary.LittleEndian
	return programHeader{
		kind: le.Uint32(b), flags: le.Uint32(b[4:]), offset: le.Uint64(b[8:]), vaddr: le.Uint64(b[16:]),
		filesz: le.Uint64(b[32:]), memsz: le.Uint64(b[40:]), alignm: le.Uint64(b[48:]),
	}
}

// elfCore is a core file's program headers, checked against the file's size.
type elfCore struct {
	name string
	data []byte // the whole file, memory mapped
	// loads are in address order and do not overlap; notes in file order.
	loads, notes []programHeader
	// wanted is the size of the file that the headers describe; headersCut
	// counts the program headers past the file's end.
	wanted     uint64
	headersCut int
	// dumpsWritten says that private memory which the core leaves out was
	// never written.
	dumpsWritten bool
	// byDebugger says that a debugger wrote the core: BFD writes a section per
	// segment, the kernel at most one, which holds their number.
	byDebugger bool
}

// truncated reports whether the file ends before its contents do.
func (c *elfCore) truncated() bool { return c.wanted > uint64(len(c.data)) }

func (c *elfCore) bad(offset uint64, format string, args ...any) error {
	return &object.FormatError{File: c.name, Offset: offset, Reason: fmt.Sprintf(format, args...)}
}

func parseCore(name string, data []byte) (*elfCore, error) {
	c := &elfCore{name: name, data: data}
	if err := c.checkHeader(); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	offset, count := le.Uint64(data[32:]), uint64(le.Uint16(data[56:]))
	if size := le.Uint16(data[54:]); count > 0 && size != programHeaderSize {
		return nil, c.bad(54, "program headers of %d bytes, not %d", size, programHeaderSize)
	}
	if count == extendedNumbering {
		var err error
		if count, err = c.extendedCount(); err != nil {
			return nil, err
		}
	}
	if count == 0 {
		return nil, c.bad(56, "a core file without program headers")
	}
	if offset > uint64(len(data)) {
		return nil, c.bad(uint64(len(data)), "truncated before the program headers at %#x", offset)
	}
	c.byDebugger = le.Uint16(data[60:]) > 1
	c.wanted = offset + count*programHeaderSize
	present := min(count, (uint64(len(data))-offset)/programHeaderSize)
	c.headersCut = int(count - present)
	for i := range present {
		c.addHeader(parseProgramHeader(data[offset+i*programHeaderSize:]))
	}
	c.sortLoads()
	return c, nil
}

func (c *elfCore) checkHeader() error {
	d := c.data
	switch {
	case len(d) == 0:
		return c.bad(0, "the file is empty")
	case len(d) < 4 || !bytes.Equal(d[:4], []byte(elf.ELFMAG)):
		return c.bad(0, "not a core file: no ELF header")
	case len(d) < 20:
		return c.bad(uint64(len(d)), "truncated within the ELF header")
	case d[4] != byte(elf.ELFCLASS64):
		return c.bad(4, "a 32-bit ELF file; only x86-64 is supported")
	case d[5] != byte(elf.ELFDATA2LSB):
		return c.bad(5, "a big-endian ELF file; only x86-64 is supported")
	}
	if m := elf.Machine(binary.LittleEndian.Uint16(d[18:])); m != elf.EM_X86_64 {
		return c.bad(18, "made for %v; only x86-64 is supported", m)
	}
	if t := elf.Type(binary.LittleEndian.Uint16(d[16:])); t != elf.ET_CORE {
		return c.bad(16, "not a core file but an ELF file of type %v", t)
	}
	if len(d) < elfHeaderSize {
		return c.bad(uint64(len(d)), "truncated within the ELF header")
	}
	return nil
}

func (c *elfCore) extendedCount() (uint64, error) {
	offset := binary.LittleEndian.Uint64(c.data[40:])
	if size := uint64(len(c.data)); offset > size || size-offset < sectionHeaderSize {
		return 0, c.bad(size, "truncated before section header 0 at %#x, which counts the program headers", offset)
	}
	return uint64(binary.LittleEndian.Uint32(c.data[offset+44:])), nil
}

func (c *elfCore) addHeader(h programHeader) {
	if h.filesz > 0 {
		c.wanted = max(c.wanted, addSaturated(h.offset, h.filesz))
	}
	switch elf.ProgType(h.kind) {
	case elf.PT_LOAD:
		if h.memsz > 0 {
			c.loads = append(c.loads, h)
		}
	case elf.PT_NOTE:
		c.notes = append(c.notes, h)
	}
}

// sortLoads brings the segments into address order and cuts overlaps, in favour
// of the lower segment, so that lookups can use binary search.
func (c *elfCore) sortLoads() {
	byAddr := func(i, j int) bool { return c.loads[i].vaddr < c.loads[j].vaddr }
	if !sort.SliceIsSorted(c.loads, byAddr) {
		sort.SliceStable(c.loads, byAddr)
	}
	kept, last := c.loads[:0], uint64(0)
	for _, h := range c.loads {
		if h.vaddr < last {
			cut := last - h.vaddr
			if h.end() <= last {
				continue
			}
			h.vaddr, h.memsz = last, h.memsz-cut
			h.filesz -= min(h.filesz, cut)
			h.offset = addSaturated(h.offset, cut)
		}
		if h.end() == math.MaxUint64 {
			h.memsz = math.MaxUint64 - h.vaddr
		}
		h.filesz = min(h.filesz, h.memsz)
		kept, last = append(kept, h), h.end()
	}
	c.loads = kept
}

// contents returns the part of [offset, offset+size) that the file has.
func (c *elfCore) contents(offset, size uint64) []byte {
	if offset >= uint64(len(c.data)) {
		return nil
	}
	return c.data[offset:min(addSaturated(offset, size), uint64(len(c.data)))]
}
