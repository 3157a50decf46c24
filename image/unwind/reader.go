package unwind

import (
	"encoding/binary"
	"fmt"
	"runtime/debug"
)

// reader reads little-endian data and keeps its first error; after one, it
// returns zeros that the caller must not use before checking the error.
type reader struct {
	data []byte
	pos  int
	err  error
}

func (r *reader) left() int { return len(r.data) - r.pos }

// take returns the next n bytes.
func (r *reader) take(n uint64) []byte {
	if r.err == nil && n > uint64(r.left()) {
		r.err = fmt.Errorf("data ends at %#x, %d bytes are wanted at %#x", len(r.data), n, r.pos)
	}
	if r.err != nil {
		return nil
	}
	b := r.data[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return b
}

func (r *reader) skip(n uint64) { r.take(n) }

func (r *reader) u8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// uleb reads an unsigned LEB128 number; bits beyond 64 are an error.
func (r *reader) uleb() uint64 {
	var v uint64
	for shift := 0; ; shift += 7 {
		b := r.u8()
		if r.err != nil {
			return 0
		}
		if shift >= 64 || shift == 63 && b&0x7f > 1 {
			r.err = fmt.Errorf("number at %#x does not fit into 64 bits", r.pos)
			return 0
		}
		v |= uint64(b&0x7f) << shift
		if b&0x80 == 0 {
			return v
		}
	}
}

// sleb reads a signed LEB128 number.
func (r *reader) sleb() int64 {
	var v int64
	for shift := 0; ; shift += 7 {
		b := r.u8()
		if r.err != nil {
			return 0
		}
		if shift >= 64 {
			r.err = fmt.Errorf("number at %#x does not fit into 64 bits", r.pos)
			return 0
		}
		v |= int64(b&0x7f) << shift
		if b&0x80 == 0 {
			if shift+7 < 64 && b&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
}

// cstring reads a NUL-terminated string.
func (r *reader) cstring() string {
	for i := r.pos; r.err == nil && i < len(r.data); i++ {
		if r.data[i] == 0 {
			s := string(r.data[r.pos:i])
			r.pos = i + 1
			return s
		}
	}
	if r.err == nil {
		r.err = fmt.Errorf("string at %#x has no end", r.pos)
	}
	return ""
}

// recovered runs f and turns a panic of a library, or a fault on a mapped file
// that was truncated meanwhile, into an error.
func recovered(what string, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: %v", what, r)
		}
	}()
	return f()
}
