package staticscan

import (
	"cmp"
	"encoding/binary"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// Range is memory of the program's.
type Range struct {
	Addr evidence.Addr
	Size int
}

func (r Range) overlaps(addr uint64, size int) bool {
	return addr < uint64(r.Addr)+uint64(r.Size) && addr+uint64(max(size, 1)) > uint64(r.Addr)
}

// Accessors are instructions of the program's own code that access, or may access,
// ranges of memory, at most so many: those first that do for sure, then those into
// the same variable, then through pointers in static data, then through others.
// What the code of the runtime's libraries does is not among them, nor are
// instructions with an address of another variable or of the stack frame, unless
// the ranges lie in a stack. left counts those that are too many.
func Accessors(p *image.Process, ranges []Range, most int) (list []evidence.Addr, left int) {
	w := newWorld(&Input{Process: p})
	type found struct {
		pc   evidence.Addr
		sure accessorClass
	}
	var all []found
	instructions := 0
	for _, m := range p.Modules {
		if m.Object == nil || image.RuntimeModule(m.Path) {
			continue
		}
		for _, f := range codeOf(m) {
			if instructions >= maxInstructions {
				left++ // at least
				break
			}
			insts, _ := f.decode(p)
			instructions += len(insts)
			a := analyseCode(insts, uint64(f.entry), w.surroundings())
			classes := map[evidence.Addr]accessorClass{}
			for _, x := range a.accesses {
				pc := evidence.Addr(insts[x.inst].PC)
				if c := w.accessor(x.at, x.operand, ranges); c != accessesOther {
					classes[pc] = max(classes[pc], c)
				}
			}
			for pc, c := range classes {
				all = append(all, found{pc, c})
			}
		}
	}
	slices.SortFunc(all, func(a, b found) int {
		if c := cmp.Compare(b.sure, a.sure); c != 0 {
			return c
		}
		return cmp.Compare(a.pc, b.pc)
	})
	if len(all) > most {
		left += len(all) - most
		all = all[:most]
	}
	for _, x := range all {
		list = append(list, x.pc)
	}
	return list, left
}

// accessorClass says how sure it is that an instruction accesses a range.
type accessorClass int

const (
	accessesOther accessorClass = iota
	accessesUnknown
	accessesLoaded   // through a pointer in static data
	accessesVariable // the same variable
	accessesRange
)

func (w *processView) accessor(at value, o *x86.Operand, ranges []Range) accessorClass {
	switch at.kind {
	case unknown:
		return accessesUnknown
	case loaded:
		return accessesLoaded
	case stack:
		if slices.ContainsFunc(ranges, func(r Range) bool { return w.onStack(r.Addr) }) {
			return accessesUnknown
		}
		return accessesOther
	}
	for _, r := range ranges {
		switch {
		case !at.varies && r.overlaps(uint64(at.off), o.Size):
			return accessesRange
		case at.varies && (w.sameVariable(uint64(at.off), uint64(r.Addr)) || r.overlaps(uint64(at.off), o.Size)):
			return accessesVariable
		}
	}
	return accessesOther
}

// codeOf are the functions of an object by its .eh_frame_hdr, which compilers make
// for all code; none without one.
func codeOf(m *image.Module) []*function {
	s := m.Object.Section(".eh_frame_hdr")
	if s == nil {
		return nil
	}
	data, err := s.Data()
	if err != nil || len(data) < 12 {
		return nil
	}
	var list []*function
	count := min(uint64(binary.LittleEndian.Uint32(data[8:])), uint64(len(data)-12)/8)
	for i := range count {
		link := s.Addr + uint64(int64(int32(binary.LittleEndian.Uint32(data[12+8*i:]))))
		low, high, err := frameRange(m, link)
		if err != nil || low != link {
			continue
		}
		list = append(list, &function{module: m, entry: m.Addr(low), guessed: true, ranges: [][2]evidence.Addr{{m.Addr(low), m.Addr(high)}}})
	}
	return list
}
