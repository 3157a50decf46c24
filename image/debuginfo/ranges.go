package debuginfo

import (
	"debug/dwarf"
	"errors"
	"fmt"
)

var errBeyond = errors.New("beyond the section")

// Range list entries of DWARF 5 (section 7.25).
const (
	rleEnd          = 0
	rleBaseAddrx    = 1
	rleStartxEndx   = 2
	rleStartxLength = 3
	rleOffsetPair   = 4
	rleBaseAddress  = 5
	rleStartEnd     = 6
	rleStartLength  = 7
)

// maxRanges bounds one range list.
const maxRanges = 1 << 18

// ranges returns the addresses that the entry covers; none for an entry without
// code. Ranges that the linker dropped, which start at 0, are left out.
func (e *entry) ranges() ([][2]uint64, error) {
	if v, ok := e.attr(dwarf.AttrRanges); ok {
		return rangeList(v)
	}
	low, ok := e.attr(dwarf.AttrLowpc)
	if !ok {
		return nil, nil
	}
	high, ok := e.attr(dwarf.AttrHighpc)
	if !ok {
		return nil, nil
	}
	return lowHigh(low, high)
}

func lowHigh(low, high value) ([][2]uint64, error) {
	start, err := low.addr()
	if err != nil {
		return nil, err
	}
	end := start + high.number
	if !high.isConstant() {
		if end, err = high.addr(); err != nil {
			return nil, err
		}
	}
	if start == 0 || end <= start {
		return nil, nil
	}
	return [][2]uint64{{start, end}}, nil
}

func rangeList(v value) ([][2]uint64, error) {
	u := v.unit
	base, err := u.base()
	if err != nil {
		return nil, err
	}
	if u.version < 5 {
		// GNU's split units keep their ranges in the executable
		home := u.home()
		offset := v.number
		if u.skeleton != nil {
			offset += home.root.gnuRangesBase
		}
		return oldRanges(home.src, offset, base)
	}
	offset := v.number
	if v.form == formRnglistx {
		if offset, err = u.listOffset(secRnglists, u.root.rnglistsBase, v.number); err != nil {
			return nil, err
		}
	}
	l, err := newListReader(u, secRnglists, offset, base, "range list")
	if err != nil {
		return nil, err
	}
	return l.ranges()
}

// listOffset looks up an index in the table of offsets that precedes the lists
// of .debug_rnglists or .debug_loclists.
func (u *unit) listOffset(id sectionID, base, index uint64) (uint64, error) {
	size := uint64(4)
	if u.wide {
		size = 8
	}
	beyond := u.src.bad(id, base, fmt.Sprintf("list index %d beyond the section", index))
	slot, err := tableSlot(u.src.sizeOf(id), base, index, size)
	if err != nil {
		return 0, beyond
	}
	r, err := u.src.reader(id, slot, "list index")
	if err != nil {
		return 0, err
	}
	offset := r.offset(u.wide)
	if r.bad {
		return 0, beyond
	}
	return base + offset, nil
}

func oldRanges(s *source, offset, base uint64) ([][2]uint64, error) {
	r, err := s.reader(secRanges, offset, "range list")
	if err != nil {
		return nil, err
	}
	var list [][2]uint64
	for {
		low, high := r.u64(), r.u64()
		switch {
		case r.bad || len(list) > maxRanges:
			return nil, s.bad(secRanges, offset, "range list without an end")
		case low == 0 && high == 0:
			return list, nil
		case low == ^uint64(0):
			base = high
		default:
			list = addRange(list, base+low, base+high)
		}
	}
}

func addRange(list [][2]uint64, low, high uint64) [][2]uint64 {
	if low == 0 || high <= low {
		return list
	}
	return append(list, [2]uint64{low, high})
}

// listReader reads one range list or location list of a unit.
type listReader struct {
	reader
	unit   *unit
	offset uint64 // of the list, in its section
	base   uint64 // of the entries that follow
}

func newListReader(u *unit, id sectionID, offset, base uint64, what string) (*listReader, error) {
	r, err := u.src.reader(id, offset, what)
	if err != nil {
		return nil, err
	}
	return &listReader{r, u, offset, base}, nil
}

// ranges reads a list of .debug_rnglists.
func (l *listReader) ranges() ([][2]uint64, error) {
	var list [][2]uint64
	for {
		kind := l.u8()
		if l.bad || len(list) > maxRanges {
			return nil, l.unit.src.bad(secRnglists, l.offset, "range list without an end")
		}
		if kind == rleEnd {
			return list, nil
		}
		low, high, pair, err := l.rangeEntry(kind)
		if err != nil {
			return nil, err
		}
		if pair && !l.bad {
			list = addRange(list, low, high)
		}
	}
}

// rangeEntry reads one entry's operands; location lists share the codes up to
// rleOffsetPair, and differ above it.
func (l *listReader) rangeEntry(kind uint8) (low, high uint64, pair bool, err error) {
	switch kind {
	case rleBaseAddrx:
		l.base, err = l.unit.indexedAddr(l.uleb())
		return 0, 0, false, err
	case rleStartxEndx:
		if low, err = l.unit.indexedAddr(l.uleb()); err == nil {
			high, err = l.unit.indexedAddr(l.uleb())
		}
	case rleStartxLength:
		low, err = l.unit.indexedAddr(l.uleb())
		high = low + l.uleb()
	case rleOffsetPair:
		low, high = l.base+l.uleb(), l.base+l.uleb()
	case rleBaseAddress:
		l.base = l.u64()
		return 0, 0, false, nil
	case rleStartEnd:
		low, high = l.u64(), l.u64()
	case rleStartLength:
		low = l.u64()
		high = low + l.uleb()
	default:
		return 0, 0, false, l.unit.src.bad(secRnglists, uint64(l.pos-1), fmt.Sprintf("unknown range list entry %d", kind))
	}
	return low, high, true, err
}
