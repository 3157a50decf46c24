package debuginfo

import (
	"bytes"
	"encoding/binary"
)

// reader reads values from a section. Past the end, or at a malformed number,
// it sets bad, moves to the end and returns zeros, so that a loop over it ends
// and one check suffices.
type reader struct {
	data []byte
	pos  int
	bad  bool
	// more, if set, returns at least the section's first n bytes: of a
	// compressed section data holds only as much as was needed so far.
	more func(n uint64) ([]byte, error)
}

// has reports whether n more bytes exist, and decompresses them if needed.
func (r *reader) has(n uint64) bool {
	if n <= uint64(r.left()) {
		return true
	}
	if r.more == nil || r.bad || n > maxSection {
		return false
	}
	data, err := r.more(uint64(r.pos) + n)
	if err != nil || uint64(len(data)) < uint64(r.pos)+n {
		return false
	}
	r.data = data
	return true
}

// maxSection is more than any section holds.
const maxSection = 1 << 48

func (r *reader) fail() {
	r.bad = true
	r.pos = len(r.data)
}

func (r *reader) left() int { return len(r.data) - r.pos }

func (r *reader) u8() uint8 {
	if r.pos >= len(r.data) && !r.has(1) {
		r.fail()
		return 0
	}
	v := r.data[r.pos]
	r.pos++
	return v
}

func (r *reader) u16() uint16 {
	if !r.has(2) {
		r.fail()
		return 0
	}
	v := binary.LittleEndian.Uint16(r.data[r.pos:])
	r.pos += 2
	return v
}

func (r *reader) u32() uint32 {
	if !r.has(4) {
		r.fail()
		return 0
	}
	v := binary.LittleEndian.Uint32(r.data[r.pos:])
	r.pos += 4
	return v
}

func (r *reader) u64() uint64 {
	if !r.has(8) {
		r.fail()
		return 0
	}
	v := binary.LittleEndian.Uint64(r.data[r.pos:])
	r.pos += 8
	return v
}

// uint reads a number of n bytes, n from 1 to 8.
func (r *reader) uint(n int) uint64 {
	if !r.has(uint64(n)) {
		r.fail()
		return 0
	}
	var v uint64
	for i := range n {
		v |= uint64(r.data[r.pos+i]) << (8 * i)
	}
	r.pos += n
	return v
}

func (r *reader) bytes(n uint64) []byte {
	if !r.has(n) {
		r.fail()
		return nil
	}
	b := r.data[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return b
}

func (r *reader) skip(n uint64) {
	if !r.has(n) {
		r.fail()
		return
	}
	r.pos += int(n)
}

func (r *reader) cstring() []byte {
	end := bytes.IndexByte(r.data[r.pos:], 0)
	for end < 0 {
		searched := r.left()
		if !r.has(uint64(searched) + 1) {
			r.fail()
			return nil
		}
		if end = bytes.IndexByte(r.data[r.pos+searched:], 0); end >= 0 {
			end += searched
		}
	}
	b := r.data[r.pos : r.pos+end]
	r.pos += end + 1
	return b
}

// uleb reads an unsigned LEB128 number. More than ten bytes are malformed.
func (r *reader) uleb() uint64 {
	if r.pos < len(r.data) && r.data[r.pos] < 0x80 {
		r.pos++
		return uint64(r.data[r.pos-1])
	}
	var v uint64
	for shift := 0; shift < 70; shift += 7 {
		b := r.u8()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	r.fail()
	return 0
}

// sleb reads a signed LEB128 number.
func (r *reader) sleb() int64 {
	var v int64
	for shift := 0; shift < 70; shift += 7 {
		b := r.u8()
		v |= int64(b&0x7f) << shift
		if b < 0x80 {
			if b&0x40 != 0 && shift+7 < 64 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
	r.fail()
	return 0
}

func (r *reader) skipLEB() {
	for range 10 {
		if r.pos >= len(r.data) && !r.has(1) {
			break
		}
		r.pos++
		if r.data[r.pos-1] < 0x80 {
			return
		}
	}
	r.fail()
}

// length reads a unit's initial length; wide is the 64-bit format.
func (r *reader) length() (n uint64, wide bool) {
	first := r.u32()
	switch {
	case first == 0xffffffff:
		return r.u64(), true
	case first >= 0xfffffff0:
		r.fail()
	}
	return uint64(first), false
}

func (r *reader) offset(wide bool) uint64 {
	if wide {
		return r.u64()
	}
	return uint64(r.u32())
}
