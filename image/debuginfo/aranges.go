package debuginfo

import (
	"slices"
	"sort"
)

// arange says that the unit at an offset of .debug_info covers addresses.
// reach is the highest end among this and all lower ones.
type arange struct {
	low, high, reach uint64
	unit             uint64
}

// readAranges reads .debug_aranges (DWARF 5 section 6.1.2), in which gcc and
// the assembler list all code of their units; clang and rustc write none by
// default. From the first malformed set on it is ignored.
func (i *Info) readAranges() []arange {
	data, err := i.main.section(secAranges)
	if err != nil {
		i.problem(err)
		return nil
	}
	var list []arange
	r := &reader{data: data}
	for r.left() > 0 && len(list) <= maxCovered {
		if list, err = i.main.readArangeSet(r, list); err != nil {
			i.problem(err)
			break
		}
	}
	sort.SliceStable(list, func(a, b int) bool { return list[a].low < list[b].low })
	reach := uint64(0)
	for n := range list {
		reach = max(reach, list[n].high)
		list[n].reach = reach
	}
	return list
}

// readArangeSet adds the ranges of one unit and moves the reader past them.
func (s *source) readArangeSet(r *reader, list []arange) ([]arange, error) {
	start := r.pos
	length, wide := r.length()
	if r.bad || length > uint64(r.left()) {
		return list, s.bad(secAranges, uint64(start), "set of addresses is longer than the section")
	}
	set := &reader{data: r.data[:r.pos+int(length)], pos: r.pos}
	r.pos += int(length)
	version, unit := set.u16(), set.offset(wide)
	addrSize, segmentSize := set.u8(), set.u8()
	if set.bad || version != 2 || addrSize != 8 || segmentSize != 0 {
		return list, s.bad(secAranges, uint64(start), "set of addresses of an unknown format")
	}
	// pairs start at a multiple of their size from the start of the set
	if odd := (set.pos - start) % 16; odd != 0 {
		set.skip(uint64(16 - odd))
	}
	for set.left() >= 16 {
		// Ranges that the linker dropped start at 0; a pair of zeros ends the
		// set.
		low, size := set.u64(), set.u64()
		if low != 0 && size != 0 && low+size > low {
			list = append(list, arange{low: low, high: low + size, unit: unit})
		}
	}
	return list, nil
}

// listedAt returns the units that .debug_aranges and their own entries say
// cover pc, in the order of the section. None means that all units have to be
// searched, which requires decompressing and reading everything.
func (i *Info) listedAt(pc uint64) []*unit {
	offsets := unitOffsets(i.aranges(), pc)
	var list []*unit
	for _, offset := range offsets {
		u := i.main.unitCovering(offset, pc)
		if u == nil {
			return nil
		}
		list = append(list, u)
	}
	return list
}

// unitOffsets returns the offsets of the units that cover pc, in order.
func unitOffsets(list []arange, pc uint64) []uint64 {
	var offsets []uint64
	n := sort.Search(len(list), func(n int) bool { return list[n].low > pc })
	for tried := 0; n > 0 && list[n-1].reach > pc && tried < 4096 && len(offsets) < maxOverlap; tried++ {
		n--
		if pc < list[n].high {
			offsets = append(offsets, list[n].unit)
		}
	}
	slices.Sort(offsets)
	return slices.Compact(offsets)
}
