package unwind

import (
	"errors"
	"fmt"
	"strings"
)

// maxEntry bounds the size of a CIE or FDE. The largest of big programs have
// tens of KiB.
const maxEntry = 1 << 20

// columns counts the columns of the call frame table that matter: the general
// registers and the return address. Vector registers are not preserved by
// callees in this ABI.
const columns = 17

// area is a section's contents by link-time address.
type area interface {
	// bytes returns n bytes at addr.
	bytes(addr, n uint64) ([]byte, error)
	// name is used in errors.
	name() string
}

// entry is a CIE or FDE without its length field.
type entry struct {
	addr uint64 // of the length field
	size uint64 // with the length field
	// id is the CIE pointer or CIE id field, which is at idAddr.
	id, idAddr uint64
	dwarf64    bool
	body       []byte // after the id field
	bodyAddr   uint64
}

// errTerminator says that an entry has length zero, which ends .eh_frame.
var errTerminator = errors.New("terminator")

// readEntry reads the entry at addr (DWARF 5 section 7.4; LSB 5.0 core,
// section 10.6.1).
func readEntry(a area, addr uint64) (entry, error) {
	head, err := a.bytes(addr, 4)
	if err != nil {
		return entry{}, err
	}
	e := entry{addr: addr}
	r := reader{data: head}
	length, lengthSize, idSize := uint64(r.u32()), uint64(4), uint64(4)
	if length == 0xffffffff {
		if head, err = a.bytes(addr, 12); err != nil {
			return entry{}, err
		}
		r = reader{data: head, pos: 4}
		length, lengthSize, idSize, e.dwarf64 = r.u64(), 12, 8, true
	}
	if length == 0 {
		return entry{}, errTerminator
	}
	if length < idSize || length > maxEntry {
		return entry{}, fmt.Errorf("%s at %#x: entry of %d bytes", a.name(), addr, length)
	}
	b, err := a.bytes(addr+lengthSize, length)
	if err != nil {
		return entry{}, err
	}
	r = reader{data: b}
	if e.dwarf64 {
		e.id = r.u64()
	} else {
		e.id = uint64(r.u32())
	}
	e.size, e.idAddr = lengthSize+length, addr+lengthSize
	e.body, e.bodyAddr = b[idSize:], e.idAddr+idSize
	return e, nil
}

// cie is a common information entry.
type cie struct {
	codeAlign uint64
	dataAlign int64
	ra        uint64 // return address column
	// encoding of the addresses in FDEs, a DW_EH_PE value.
	encoding uint8
	// augmented: FDEs have augmentation data, preceded by its length.
	augmented bool
	// signal marks the frame as one that a signal interrupted ('S').
	signal  bool
	initial []byte
}

// fde is a frame description entry; addresses are link-time addresses.
type fde struct {
	cie          *cie
	begin, end   uint64
	instructions []byte
}

func (f *fde) covers(pc uint64) bool { return pc >= f.begin && pc < f.end }

// format distinguishes .eh_frame and .debug_frame.
type format uint8

const (
	ehFrame format = iota
	debugFrame
)

// isCIE reports whether the entry is a CIE.
func (e *entry) isCIE(f format) bool {
	switch {
	case f == ehFrame:
		return e.id == 0
	case e.dwarf64:
		return e.id == ^uint64(0)
	}
	return e.id == 0xffffffff
}

// cieAddr is the address of an FDE's CIE; base is the section's start.
func (e *entry) cieAddr(f format, base uint64) uint64 {
	if f == ehFrame {
		return e.idAddr - e.id
	}
	return base + e.id
}

// parseCIE reads a CIE's body.
func parseCIE(a area, e *entry, f format) (*cie, error) {
	r := reader{data: e.body}
	c := &cie{}
	version := r.u8()
	if r.err == nil && version != 1 && version != 3 && version != 4 {
		return nil, fmt.Errorf("%s at %#x: bad CIE version %d", a.name(), e.addr, version)
	}
	augmentation := r.cstring()
	if strings.HasPrefix(augmentation, "eh") {
		r.skip(8) // an address that g++ 2 put there
	}
	if version == 4 {
		if address, segment := r.u8(), r.u8(); r.err == nil && (address != 8 || segment != 0) {
			return nil, fmt.Errorf("%s at %#x: CIE of %d-byte addresses and %d-byte segments", a.name(), e.addr, address, segment)
		}
	}
	c.codeAlign, c.dataAlign = r.uleb(), r.sleb()
	if version == 1 {
		c.ra = uint64(r.u8())
	} else {
		c.ra = r.uleb()
	}
	if err := c.augment(&r, augmentation); err != nil {
		return nil, fmt.Errorf("%s at %#x: %w", a.name(), e.addr, err)
	}
	c.initial = r.take(uint64(max(r.left(), 0)))
	switch {
	case r.err != nil:
		return nil, fmt.Errorf("%s at %#x: CIE: %w", a.name(), e.addr, r.err)
	case c.ra >= columns:
		return nil, fmt.Errorf("%s at %#x: return address column %d", a.name(), e.addr, c.ra)
	case c.codeAlign == 0 || c.codeAlign > 64 || c.dataAlign < -64 || c.dataAlign > 64:
		return nil, fmt.Errorf("%s at %#x: alignment factors %d and %d", a.name(), e.addr, c.codeAlign, c.dataAlign)
	}
	return c, nil
}

// augment reads the augmentation data (LSB 5.0 core, section 10.6.1.1.1).
func (c *cie) augment(r *reader, augmentation string) error {
	if augmentation == "" || augmentation == "eh" {
		return nil
	}
	if augmentation[0] != 'z' {
		return fmt.Errorf("unknown augmentation %q", augmentation)
	}
	c.augmented = true
	data := reader{data: r.take(r.uleb())}
	for _, letter := range augmentation[1:] {
		switch letter {
		case 'L':
			data.skip(1)
		case 'R':
			c.encoding = data.u8()
		case 'P':
			if _, err := data.pointer(data.u8()&^peIndirect, 0); err != nil {
				return err
			}
		case 'S':
			c.signal = true
		case 'B', 'G': // AArch64 only, no data
		default:
			// The length is known, so the data could be skipped, but it may
			// change the meaning of the table.
			return fmt.Errorf("unknown augmentation %q", augmentation)
		}
	}
	return data.err
}

// parseFDE reads an FDE's body.
func parseFDE(a area, e *entry, c *cie) (*fde, error) {
	r := reader{data: e.body}
	begin, err := r.pointer(c.encoding, e.bodyAddr)
	if err != nil {
		return nil, fmt.Errorf("%s at %#x: FDE: %w", a.name(), e.addr, err)
	}
	// Only the format half of the encoding applies to the length.
	length, err := r.pointer(c.encoding&0x0f, 0)
	if err != nil {
		return nil, fmt.Errorf("%s at %#x: FDE: %w", a.name(), e.addr, err)
	}
	if c.augmented {
		r.skip(r.uleb())
	}
	f := &fde{cie: c, begin: begin, end: begin + length}
	f.instructions = r.take(uint64(max(r.left(), 0)))
	if r.err != nil {
		return nil, fmt.Errorf("%s at %#x: FDE: %w", a.name(), e.addr, r.err)
	}
	if f.end < f.begin {
		return nil, fmt.Errorf("%s at %#x: FDE of %#x bytes at %#x", a.name(), e.addr, length, begin)
	}
	return f, nil
}

// The pointer encodings (LSB 5.0 core, section 10.5.1).
const (
	peOmit     = 0xff
	peIndirect = 0x80
	pePCRel    = 0x10
)

// pointer reads an encoded pointer; addr is the address of the data's start.
func (r *reader) pointer(encoding uint8, addr uint64) (uint64, error) {
	at := addr + uint64(r.pos)
	var v uint64
	switch encoding & 0x0f {
	case 0x00, 0x04, 0x0c:
		v = r.u64()
	case 0x01:
		v = r.uleb()
	case 0x02:
		v = uint64(r.u16())
	case 0x03:
		v = uint64(r.u32())
	case 0x09:
		v = uint64(r.sleb())
	case 0x0a:
		v = uint64(int64(int16(r.u16())))
	case 0x0b:
		v = uint64(int64(int32(r.u32())))
	default:
		return 0, fmt.Errorf("pointer encoding %#x is not known", encoding)
	}
	switch encoding & 0xf0 {
	case 0:
	case pePCRel:
		v += at
	default:
		return 0, fmt.Errorf("pointer encoding %#x is not supported", encoding)
	}
	return v, r.err
}
