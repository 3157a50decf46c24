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
			return u.gnuSplitList(offset, pc)
		}
		return u.oldList(offset, base, pc)
	}
	if v.form == formLoclistx {
		if offset, err = u.listOffset(secLoclists, u.root.loclistsBase, v.number); err != nil {
			return nil, err
		}
	}
	return u.newList(offset, base, pc)
}

func (u *unit) listReader(id sectionID, offset uint64) (reader, error) {
	return u.src.reader(id, offset, "location list")
}

// oldList reads .debug_loc (DWARF 4 section 2.6.2).
func (u *unit) oldList(offset, base, pc uint64) ([]byte, error) {
	r, err := u.listReader(secLoc, offset)
	if err != nil {
		return nil, err
	}
	for range maxLocations {
		low, high := r.u64(), r.u64()
		if r.bad || low == 0 && high == 0 {
			break
		}
		if low == ^uint64(0) {
			base = high
			continue
		}
		expr := r.bytes(uint64(r.u16()))
		if pc >= base+low && pc < base+high && !r.bad {
			return expr, nil
		}
	}
	if r.bad {
		return nil, u.src.bad(secLoc, offset, "location list without an end")
	}
	return nil, nil
}

// gnuSplitList reads .debug_loc.dwo of GNU's split DWARF 4, whose entries
// are an early form of DWARF 5's.
func (u *unit) gnuSplitList(offset, pc uint64) ([]byte, error) {
	r, err := u.listReader(secLoc, offset)
	if err != nil {
		return nil, err
	}
	base, err := u.base()
	if err != nil {
		return nil, err
	}
	for range maxLocations {
		kind := r.u8()
		if r.bad || kind == 0 {
			break
		}
		var low, high uint64
		switch kind {
		case 1:
			if base, err = u.indexedAddr(r.uleb()); err != nil {
				return nil, err
			}
			continue
		case 2, 3:
			if low, err = u.indexedAddr(r.uleb()); err != nil {
				return nil, err
			}
			high = low
			if kind == 3 {
				high += uint64(r.u32())
			} else if high, err = u.indexedAddr(r.uleb()); err != nil {
				return nil, err
			}
		case 4:
			low, high = base+uint64(r.u32()), base+uint64(r.u32())
		default:
			return nil, u.src.bad(secLoc, uint64(r.pos-1), fmt.Sprintf("unknown location list entry %d", kind))
		}
		expr := r.bytes(uint64(r.u16()))
		if pc >= low && pc < high && !r.bad {
			return expr, nil
		}
	}
	if r.bad {
		return nil, u.src.bad(secLoc, offset, "location list without an end")
	}
	return nil, nil
}

// newList reads .debug_loclists. The default entry is valid where no other is
// (DWARF 5 section 2.6.2).
func (u *unit) newList(offset, base, pc uint64) ([]byte, error) {
	r, err := u.listReader(secLoclists, offset)
	if err != nil {
		return nil, err
	}
	var fallback []byte
	for range maxLocations {
		kind := r.u8()
		if kind == 0 {
			break
		}
		low, high, pair, err := u.locationEntry(&r, kind, &base)
		if err != nil {
			return nil, err
		}
		if !pair {
			continue
		}
		expr := r.bytes(r.uleb())
		if r.bad {
			break
		}
		if kind == lleDefault {
			fallback = expr
		} else if pc >= low && pc < high {
			return expr, nil
		}
	}
	if r.bad {
		return nil, u.src.bad(secLoclists, offset, "location list without an end")
	}
	return fallback, nil
}

func (u *unit) locationEntry(r *reader, kind uint8, base *uint64) (low, high uint64, pair bool, err error) {
	switch kind {
	case rleBaseAddrx, rleStartxEndx, rleStartxLength, rleOffsetPair:
		return u.rangeEntry(r, kind, base)
	case lleDefault:
		return 0, 0, true, nil
	case lleBaseAddress:
		return u.rangeEntry(r, rleBaseAddress, base)
	case lleStartEnd:
		return u.rangeEntry(r, rleStartEnd, base)
	case lleStartLength:
		return u.rangeEntry(r, rleStartLength, base)
	case lleViewPair:
		r.skipLEB()
		r.skipLEB()
		return 0, 0, false, nil
	}
	return 0, 0, false, u.src.bad(secLoclists, uint64(r.pos-1), fmt.Sprintf("unknown location list entry %d", kind))
}

// frameBase returns the expression of the frame base of a function at pc.
func (e *entry) frameBase(pc uint64) ([]byte, error) {
	v, ok, err := e.inherited(dwarf.AttrFrameBase)
	if err != nil || !ok {
		return nil, err
	}
	return locationAt(v, pc)
}
