package debuginfo

import (
	"debug/dwarf"
	"fmt"
)

// Location list entries of DWARF 5 (section 7.7.3); codes up to 4 are as in
// range lists.
const (
	lleDefault     = 5
	lleBaseAddress = 6
	lleStartEnd    = 7
	lleStartLength = 8
	lleViewPair    = 9 // GNU: two view numbers
)

// maxLocations bounds one location list.
const maxLocations = 1 << 18

// locationAt returns the expression that is valid at pc, in a form that can be
// evaluated outside its unit; nil when there is none.
func locationAt(v value, pc uint64) ([]byte, error) {
	var expr []byte
	var err error
	switch {
	case v.form == 0:
		return nil, nil
	case v.form == formLoclistx || v.isOffset():
		expr, err = locationList(v, pc)
	default:
		expr = v.block
	}
	if err != nil || len(expr) == 0 {
		return nil, err
	}
	return v.unit.portable(expr)
}

func locationList(v value, pc uint64) ([]byte, error) {
	u := v.unit
	base, err := u.base()
	if err != nil {
		return nil, err
	}
	offset := v.number
	if u.version < 5 {
		if u.skeleton != nil {
			return readLocations(u, secLoc, offset, base, func(l *listReader) ([]byte, error) { return l.gnuSplitLocation(pc) })
		}
		return readLocations(u, secLoc, offset, base, func(l *listReader) ([]byte, error) { return l.oldLocation(pc), nil })
	}
	if v.form == formLoclistx {
		if offset, err = u.listOffset(secLoclists, u.root.loclistsBase, v.number); err != nil {
			return nil, err
		}
	}
	return readLocations(u, secLoclists, offset, base, func(l *listReader) ([]byte, error) { return l.location(pc) })
}

// readLocations looks an expression up in the location list at offset.
func readLocations(u *unit, id sectionID, offset, base uint64, lookup func(*listReader) ([]byte, error)) ([]byte, error) {
	l, err := newListReader(u, id, offset, base, "location list")
	if err != nil {
		return nil, err
	}
	expr, err := lookup(l)
	if err == nil && l.bad {
		return nil, u.src.bad(id, offset, "location list without an end")
	}
	return expr, err
}

// oldLocation reads .debug_loc (DWARF 4 section 2.6.2).
func (l *listReader) oldLocation(pc uint64) []byte {
	for range maxLocations {
		low, high := l.u64(), l.u64()
		if l.bad || low == 0 && high == 0 {
			break
		}
		if low == ^uint64(0) {
			l.base = high
			continue
		}
		expr := l.bytes(uint64(l.u16()))
		if pc >= l.base+low && pc < l.base+high && !l.bad {
			return expr
		}
	}
	return nil
}

// gnuSplitLocation reads .debug_loc.dwo of GNU's split DWARF 4, whose entries
// are an early form of DWARF 5's.
func (l *listReader) gnuSplitLocation(pc uint64) ([]byte, error) {
	for range maxLocations {
		kind := l.u8()
		if l.bad || kind == 0 {
			break
		}
		var low, high uint64
		var err error
		switch kind {
		case 1:
			if l.base, err = l.unit.indexedAddr(l.uleb()); err != nil {
				return nil, err
			}
			continue
		case 2, 3:
			if low, err = l.unit.indexedAddr(l.uleb()); err != nil {
				return nil, err
			}
			high = low
			if kind == 3 {
				high += uint64(l.u32())
			} else if high, err = l.unit.indexedAddr(l.uleb()); err != nil {
				return nil, err
			}
		case 4:
			low, high = l.base+uint64(l.u32()), l.base+uint64(l.u32())
		default:
			return nil, l.unit.src.bad(secLoc, uint64(l.pos-1), fmt.Sprintf("unknown location list entry %d", kind))
		}
		expr := l.bytes(uint64(l.u16()))
		if pc >= low && pc < high && !l.bad {
			return expr, nil
		}
	}
	return nil, nil
}

// location reads .debug_loclists. The default entry is valid where no other is
// (DWARF 5 section 2.6.2).
func (l *listReader) location(pc uint64) ([]byte, error) {
	var fallback []byte
	for range maxLocations {
		kind := l.u8()
		if kind == 0 {
			break
		}
		low, high, pair, err := l.locationEntry(kind)
		if err != nil {
			return nil, err
		}
		if !pair {
			continue
		}
		expr := l.bytes(l.uleb())
		if l.bad {
			break
		}
		if kind == lleDefault {
			fallback = expr
		} else if pc >= low && pc < high {
			return expr, nil
		}
	}
	return fallback, nil
}

func (l *listReader) locationEntry(kind uint8) (low, high uint64, pair bool, err error) {
	switch kind {
	case rleBaseAddrx, rleStartxEndx, rleStartxLength, rleOffsetPair:
		return l.rangeEntry(kind)
	case lleDefault:
		return 0, 0, true, nil
	case lleBaseAddress:
		return l.rangeEntry(rleBaseAddress)
	case lleStartEnd:
		return l.rangeEntry(rleStartEnd)
	case lleStartLength:
		return l.rangeEntry(rleStartLength)
	case lleViewPair:
		l.skipLEB()
		l.skipLEB()
		return 0, 0, false, nil
	}
	return 0, 0, false, l.unit.src.bad(secLoclists, uint64(l.pos-1), fmt.Sprintf("unknown location list entry %d", kind))
}

// frameBase returns the expression of the frame base of a function at pc.
func (e *entry) frameBase(pc uint64) ([]byte, error) {
	v, ok, err := e.inherited(dwarf.AttrFrameBase)
	if err != nil || !ok {
		return nil, err
	}
	return locationAt(v, pc)
}
