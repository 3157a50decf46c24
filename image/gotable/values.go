package gotable

import (
	"errors"
	"fmt"

	"diagnose/evidence"
)

// errNoValue means that a table has no value for the address.
var errNoValue = errors.New("the table has no value for the address")

// valueAt decodes the pc-value table at an offset of pctab: pairs of a change of
// the value and a distance to the next change, each a varint
// (golang.org/s/go12symtab; runtime.pcvalue). Offset 0 is no table.
func (t *Table) valueAt(offset uint32, begin, pc evidence.Addr) (int32, error) {
	if offset == 0 {
		return 0, errNoValue
	}
	s := stream{memory: t.memory, addr: t.values + evidence.Addr(offset)}
	value, at := int32(-1), begin
	for first := true; ; first = false {
		if err := t.memory.spend(); err != nil {
			return 0, err
		}
		change, err := s.varint()
		if err != nil {
			return 0, err
		}
		if change == 0 && !first {
			return 0, errNoValue
		}
		distance, err := s.varint()
		if err != nil {
			return 0, err
		}
		value += int32(change>>1) ^ -int32(change&1)
		at += evidence.Addr(distance)
		if pc < at {
			return value, nil
		}
	}
}

// stream reads varints.
type stream struct {
	memory memory
	addr   evidence.Addr
	buffer [64]byte
	data   []byte
}

func (s *stream) varint() (uint32, error) {
	var v uint32
	for shift := 0; shift < 35; shift += 7 {
		if len(s.data) == 0 {
			n, err := s.memory.ReadMemory(s.addr, s.buffer[:])
			if n == 0 {
				return 0, err
			}
			s.data, s.addr = s.buffer[:n], s.addr+evidence.Addr(n)
		}
		b := s.data[0]
		s.data = s.data[1:]
		v |= uint32(b&0x7f) << shift
		if b&0x80 == 0 {
			return v, nil
		}
	}
	return 0, fmt.Errorf("the number before %v is too long", s.addr)
}
