package record

import (
	"slices"

	"diagnose/image/x86"
)

// Where data stands among the code, two bytes that look like an instruction may
// be either. What decides is the function around them: one that unwinding
// tables name from end to end, and that decodes as a whole, is code, and says
// where its instructions begin.

// function is a part of the code that an entry of .eh_frame covers, as offsets.
type function struct{ start, end int }

// functionEntry is an entry of .eh_frame_hdr's table: the offset of a function in
// the code, and the address of what describes it.
type functionEntry struct {
	start int
	fde   uint64
}

// extents are the functions whose ends are known, by their starts.
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

// extent reads the length of the function at a start from its FDE, whose
// pointers are as all assemblers write them (DW_EH_PE_pcrel | DW_EH_PE_sdata4).
// That they are is seen by the first one, which must be the start.
func (s *siteSearch) extent(start int, fde uint64) (function, bool) {
	var b [16]byte
	if _, err := s.file.ReadAddr(b[:], fde); err != nil {
		return function{}, false
	}
	at := fde + 8 + uint64(int64(int32(le.Uint32(b[8:]))))
	length := uint64(le.Uint32(b[12:]))
	if at != s.base+uint64(start) || length == 0 || length > functionLimit || uint64(start)+length > uint64(len(s.code)) {
		return function{}, false
	}
	return function{start, start + int(length)}, true
}

// instructionAt says whether an instruction begins at an offset. sure is false
// where there is no function around it, or one that does not decode.
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

// kernels are instructions that no program may execute.
var kernels = []string{"in", "insb", "insd", "insw", "out", "outsb", "outsd", "outsw", "hlt", "cli", "sti", "iretw", "iretd", "iretq",
	"int1", "int", "retf", "rdmsr", "wrmsr", "clts", "invd", "wbinvd", "lgdt", "lidt", "lldt", "ltr", "sysret", "sysexit"}

// refuted reports whether what follows an instruction at an offset cannot be
// executed, so that it is none.
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
