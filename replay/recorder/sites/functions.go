package sites

import (
	"encoding/binary"
	"slices"

	"diagnose/image/x86"
)

// Where there is data among the code, two bytes that look like an instruction may be either.
// The function around them decides: if unwinding tables name it from end to end, and it decodes
// as a whole, it is code, and shows where its instructions begin.

// function is a range of code that an entry of .eh_frame covers, as offsets.
type function struct{ start, end int }

// functionEntry is an entry of .eh_frame_hdr's table: the offset of a function in the code, and
// the address of its FDE.
type functionEntry struct {
	start int
	fde   uint64
}

// extents returns the functions with known ends, by their starts.
func (s *siteSearch) extents() []function {
	if s.functions == nil {
		s.functions = make([]function, 0, len(s.table))
		for _, e := range s.table {
			if f, ok := s.extent(e.start, e.fde); ok {
				s.functions = append(s.functions, f)
			}
		}
		slices.SortFunc(s.functions, func(a, b function) int { return a.start - b.start })
	}
	return s.functions
}

// extent reads the length of the function at a start from its FDE. The pointers are as all
// assemblers write them (DW_EH_PE_pcrel | DW_EH_PE_sdata4). The first pointer must be the
// start, which confirms that.
func (s *siteSearch) extent(start int, fde uint64) (function, bool) {
	var b [16]byte
	if _, err := s.file.ReadAddr(b[:], fde); err != nil {
		return function{}, false
	}
	at := fde + 8 + uint64(int64(int32(binary.LittleEndian.Uint32(b[8:]))))
	length := uint64(binary.LittleEndian.Uint32(b[12:]))
	if at != s.base+uint64(start) || length == 0 || length > functionLimit || uint64(start)+length > uint64(len(s.code)) {
		return function{}, false
	}
	return function{start, start + int(length)}, true
}

// instructionAt reports whether an instruction begins at an offset. sure is false if no
// function covers the offset, or the function does not decode.
func (s *siteSearch) instructionAt(at int) (begins, sure bool) {
	functions := s.extents()
	i, exact := slices.BinarySearchFunc(functions, at, func(f function, at int) int { return f.start - at })
	if !exact {
		i--
	}
	if i < 0 || at >= functions[i].end {
		return false, false
	}
	f := functions[i]
	for next := f.start; next < f.end; {
		inst, err := x86.Decode(s.code[next:f.end], s.base+uint64(next))
		if err != nil {
			return false, false
		}
		begins = begins || next == at
		next += inst.Len
	}
	return begins, true
}

// kernels are instructions that a program may not execute.
var kernels = []string{"in", "insb", "insd", "insw", "out", "outsb", "outsd", "outsw", "hlt", "cli", "sti", "iretw", "iretd", "iretq",
	"int1", "int", "retf", "rdmsr", "wrmsr", "clts", "invd", "wbinvd", "lgdt", "lidt", "lldt", "ltr", "sysret", "sysexit"}

// refuted reports whether the instructions after the one at an offset cannot be executed, so
// that it is no instruction.
func (s *siteSearch) refuted(at int) bool {
	const followers = 24
	for range followers {
		inst, err := x86.Decode(s.code[at:], s.base+uint64(at))
		if err != nil || slices.Contains(kernels, inst.Op) {
			return true
		}
		if inst.Flow == x86.FlowJump || inst.Flow == x86.FlowReturn || inst.Flow == x86.FlowTrap {
			return false
		}
		if at += inst.Len; at >= len(s.code) {
			return true
		}
	}
	return false
}
