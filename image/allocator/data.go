package allocator

import (
	"encoding/binary"

	"diagnose/evidence"
	"diagnose/image"
)

// mostData bounds the data of one module that is searched, in bytes.
const mostData = 64 << 20

// Word is the size of a pointer, in bytes.
const Word = 8

// Region is a part of a module's writable data.
type Region struct {
	Start evidence.Addr
	Data  []byte
}

// End is the end of the data.
func (r *Region) End() evidence.Addr { return r.Start + evidence.Addr(len(r.Data)) }

// Word is the word at an offset that is at most that of the last word.
func (r *Region) Word(off int) uint64 { return binary.LittleEndian.Uint64(r.Data[off:]) }

// Regions reads the writable data of a module, its zeroed part included. Data that cannot be
// read, and data beyond the bound, is left out.
func Regions(p *image.Process, m *image.Module) (list []Region) {
	left := uint64(mostData)
	for i := range p.Mappings {
		r := &p.Mappings[i]
		size := uint64(r.End - r.Start)
		if !r.Writable() || p.ModuleAt(r.Start) != m || size > left {
			continue
		}
		left -= size
		data := make([]byte, size)
		n, _ := p.ReadMemory(r.Start, data)
		if n < Word {
			continue
		}
		if last := len(list) - 1; last >= 0 && list[last].End() == r.Start {
			list[last].Data = append(list[last].Data, data[:n]...)
			continue
		}
		list = append(list, Region{r.Start, data[:n]})
	}
	return list
}

// LastWord returns the last of a number of words, from an address on, that is wanted; 0: none is. wanted has the word and
// its index.
func LastWord(m image.Memory, at evidence.Addr, count int, wanted func(uint64, int) bool) (uint64, error) {
	const piece = 4096 // words
	buffer := make([]byte, min(piece, count)*Word)
	for end := count; end > 0; {
		start := max(0, end-piece)
		b := buffer[:(end-start)*Word]
		if _, err := m.ReadMemory(at+evidence.Addr(start)*Word, b); err != nil {
			return 0, err
		}
		for i := end - start - 1; i >= 0; i-- {
			if w := binary.LittleEndian.Uint64(b[i*Word:]); w != 0 && wanted(w, start+i) {
				return w, nil
			}
		}
		end = start
	}
	return 0, nil
}

// WritableAt reports whether a range of memory is writable and of no module.
func WritableAt(p *image.Process, start evidence.Addr, size uint64) bool {
	for end := start + evidence.Addr(size); start < end; {
		m := p.MappingAt(start)
		if m == nil || !m.Writable() || p.ModuleAt(start) != nil {
			return false
		}
		start = m.End
	}
	return size > 0
}

// Modules are the modules that may have an allocator: all but the dynamic linker's companions that are
// too small to have its tables, the executable first.
func Modules(p *image.Process) []*image.Module {
	var list []*image.Module
	if p.Exe != nil {
		list = append(list, p.Exe)
	}
	for _, m := range p.Modules {
		if m != p.Exe {
			list = append(list, m)
		}
	}
	return list
}
