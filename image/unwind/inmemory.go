package unwind

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
)

// maxHeaderTable bounds .eh_frame_hdr in memory; 64 MiB are eight million
// functions. maxCopied bounds those of all modules.
const (
	maxHeaderTable = 64 << 20
	maxCopied      = 256 << 20
)

// maxMemoryScan bounds the scan of an .eh_frame whose size is not known.
const maxMemoryScan = 16 << 20

// openMemory finds the tables of a module that has no file, such as the vDSO
// or a deleted library, by the program headers in the process's memory.
func (m *moduleCFI) openMemory() {
	segment, err := ehFrameSegment(m.memory, m.module.Start)
	if err != nil {
		// The Go linker makes no .eh_frame. Its own table has the frames.
		table, _ := m.module.GoTable()
		if complete := errors.Is(err, errNoEHFrame) && table != nil && table.HasFrames(); m.problem == nil && !complete {
			m.problem = fmt.Errorf("%s in memory: %w", m.module.Path, err)
		}
		return
	}
	addr := m.module.Addr(segment.Vaddr)
	size := min(segment.Memsz, maxHeaderTable)
	if m.copied.Add(int64(size)) > maxCopied {
		m.problem = fmt.Errorf("%s in memory: .eh_frame_hdr: all modules' take more than %d bytes", m.module.Path, maxCopied)
		return
	}
	data := make([]byte, size)
	if _, err := m.memory.ReadMemory(addr, data); err != nil {
		m.problem = fmt.Errorf("%s in memory: .eh_frame_hdr: %w", m.module.Path, err)
		return
	}
	m.table, err = parseHeader(data, segment.Vaddr)
	if err != nil {
		m.problem = fmt.Errorf("%s in memory: %w", m.module.Path, err)
		return
	}
	m.eh = &memoryArea{title: m.module.Path + ": .eh_frame in memory", memory: m.memory, bias: m.module.Bias}
	m.ehStart, m.ehSize = m.table.ehFrame, maxMemoryScan
}

var errNoEHFrame = errors.New("has no PT_GNU_EH_FRAME")

// ehFrameSegment reads the PT_GNU_EH_FRAME program header of the object
// mapped at start.
func ehFrameSegment(memory image.Memory, start evidence.Addr) (elf.Prog64, error) {
	var head [64]byte
	if _, err := memory.ReadMemory(start, head[:]); err != nil {
		return elf.Prog64{}, fmt.Errorf("ELF header: %w", err)
	}
	if string(head[:4]) != elf.ELFMAG || head[elf.EI_CLASS] != byte(elf.ELFCLASS64) {
		return elf.Prog64{}, fmt.Errorf("no ELF header at %v", start)
	}
	offset := binary.LittleEndian.Uint64(head[32:])
	size, count := binary.LittleEndian.Uint16(head[54:]), binary.LittleEndian.Uint16(head[56:])
	if size != 56 || count > 256 {
		return elf.Prog64{}, fmt.Errorf("%d program headers of %d bytes at %v", count, size, start)
	}
	table := make([]byte, int(size)*int(count))
	if _, err := memory.ReadMemory(start+evidence.Addr(offset), table); err != nil {
		return elf.Prog64{}, fmt.Errorf("program headers: %w", err)
	}
	for ; len(table) > 0; table = table[size:] {
		if elf.ProgType(binary.LittleEndian.Uint32(table)) == elf.PT_GNU_EH_FRAME {
			return elf.Prog64{
				Vaddr: binary.LittleEndian.Uint64(table[16:]),
				Memsz: binary.LittleEndian.Uint64(table[40:]),
			}, nil
		}
	}
	return elf.Prog64{}, fmt.Errorf("the object at %v %w", start, errNoEHFrame)
}
