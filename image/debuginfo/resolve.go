package debuginfo

import (
	"encoding/binary"
	"fmt"
)

// ref resolves a reference to another DIE.
func (v value) ref() (*unit, uint64, error) {
	u := v.unit
	switch v.form {
	case formRef1, formRef2, formRef4, formRef8, formRefUdata:
		off := u.offset + v.number
		if v.number > u.end || off < u.first || off >= u.end {
			return nil, 0, u.src.bad(u.section, off, "reference leaves its unit")
		}
		return u, off, nil
	case formRefAddr:
		return u.src.resolve(v.number)
	case formRefSig8:
		target, err := u.src.typeUnit(v.number)
		if err != nil {
			return nil, 0, err
		}
		if target == nil {
			return nil, 0, u.src.unsupported(fmt.Sprintf("no type unit has the signature %#x", v.number))
		}
		return target, target.typeOffset, nil
	case formGNURefAlt, formRefSup4, formRefSup8:
		alt, err := u.src.alternate()
		if err != nil {
			return nil, 0, err
		}
		return alt.resolve(v.number)
	}
	return nil, 0, u.src.bad(u.section, u.offset, fmt.Sprintf("form %#x is no reference", uint16(v.form)))
}

func (s *source) resolve(off uint64) (*unit, uint64, error) {
	u, err := s.unitAt(off)
	if err != nil {
		return nil, 0, err
	}
	if u == nil {
		return nil, 0, s.bad(secInfo, off, "reference to no unit")
	}
	return u, off, nil
}

// str resolves a string.
func (v value) str() (string, error) {
	u := v.unit
	switch v.form {
	case formString:
		return string(v.block), nil
	case formStrp:
		return u.src.stringAt(secStr, v.number)
	case formLineStrp:
		return u.src.stringAt(secLineStr, v.number)
	case formStrx, formStrx1, formStrx2, formStrx3, formStrx4, formGNUStrIndex:
		return u.indexedString(v.number)
	case formGNUStrpAlt, formStrpSup:
		alt, err := u.src.alternate()
		if err != nil {
			return "", err
		}
		return alt.stringAt(secStr, v.number)
	}
	return "", u.src.bad(u.section, u.offset, fmt.Sprintf("form %#x is no string", uint16(v.form)))
}

func (u *unit) indexedString(index uint64) (string, error) {
	data, err := u.src.section(secStrOffsets)
	if err != nil {
		return "", err
	}
	size := uint64(4)
	if u.wide {
		size = 8
	}
	off, err := tableSlot(uint64(len(data)), u.root.strOffsetsBase, index, size)
	if err != nil {
		return "", u.src.bad(secStrOffsets, u.root.strOffsetsBase, fmt.Sprintf("string index %d beyond the section", index))
	}
	if u.wide {
		return u.src.stringAt(secStr, binary.LittleEndian.Uint64(data[off:]))
	}
	return u.src.stringAt(secStr, uint64(binary.LittleEndian.Uint32(data[off:])))
}

// tableSlot returns the offset of an element, checked without overflow.
func tableSlot(n, base, index, size uint64) (uint64, error) {
	if base > n || index >= (n-base)/size {
		return 0, errBeyond
	}
	return base + index*size, nil
}

// addr resolves an address.
func (v value) addr() (uint64, error) {
	switch v.form {
	case formAddr:
		return v.number, nil
	case formAddrx, formAddrx1, formAddrx2, formAddrx3, formAddrx4, formGNUAddrIndex:
		return v.unit.indexedAddr(v.number)
	}
	u := v.unit
	return 0, u.src.bad(u.section, u.offset, fmt.Sprintf("form %#x is no address", uint16(v.form)))
}

func (u *unit) indexedAddr(index uint64) (uint64, error) {
	home := u.home()
	data, err := home.src.section(secAddr)
	if err != nil {
		return 0, err
	}
	off, err := tableSlot(uint64(len(data)), home.root.addrBase, index, 8)
	if err != nil {
		return 0, home.src.bad(secAddr, home.root.addrBase, fmt.Sprintf("address index %d beyond the section", index))
	}
	return binary.LittleEndian.Uint64(data[off:]), nil
}

// isConstant reports whether a value is a constant, and not an offset or a
// block.
func (v value) isConstant() bool {
	switch v.form {
	case formData1, formData2, formData4, formData8, formSdata, formUdata, formImplicitConst, formFlag, formFlagPresent:
		return true
	}
	return false
}

// isOffset reports whether a value is an offset into another section; in DWARF
// 2 and 3 it looks like a constant.
func (v value) isOffset() bool {
	return v.form == formSecOffset || v.unit != nil && v.unit.version < 4 && (v.form == formData4 || v.form == formData8)
}

// signed returns a constant as a signed number; the plain data forms are
// sign-extended from their width.
func (v value) signed() int64 {
	switch v.form {
	case formData1:
		return int64(int8(v.number))
	case formData2:
		return int64(int16(v.number))
	case formData4:
		return int64(int32(v.number))
	}
	return int64(v.number)
}
