package value

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
)

// maxObject bounds the bytes of one object that are held at a time.
const maxObject = 1 << 20

// source yields the bytes of one variable, from offset 0.
type source interface {
	read(offset, size int64) ([]byte, error)
	// address returns the address of the byte at offset in the target's memory.
	address(offset int64) (evidence.Addr, bool)
}

// memorySource is a variable in the target's memory.
type memorySource struct {
	memory image.Memory
	base   evidence.Addr
}

func (s memorySource) read(offset, size int64) ([]byte, error) {
	if size < 0 || size > maxObject {
		return nil, fmt.Errorf("an object of %d bytes is more than is read at once", size)
	}
	data := make([]byte, size)
	if size == 0 {
		return data, nil
	}
	if s.memory == nil {
		return nil, unavailable("there is no memory to read")
	}
	if _, err := s.memory.ReadMemory(s.base+evidence.Addr(offset), data); err != nil {
		return nil, err
	}
	return data, nil
}

func (s memorySource) address(offset int64) (evidence.Addr, bool) {
	return s.base + evidence.Addr(offset), true
}

// bufferSource is a variable put together from registers, computed values and
// pieces of memory, some of which may be missing.
type bufferSource struct {
	data  []byte
	holes []hole
}

type hole struct {
	start, end int64
	err        error
}

func (s *bufferSource) read(offset, size int64) ([]byte, error) {
	if offset < 0 || size < 0 || offset > int64(len(s.data)) || size > int64(len(s.data))-offset {
		return nil, unavailable(fmt.Sprintf("only %d of its bytes are known", len(s.data)))
	}
	for _, h := range s.holes {
		if h.start < offset+size && offset < h.end {
			return nil, h.err
		}
	}
	return s.data[offset : offset+size], nil
}

func (s *bufferSource) address(int64) (evidence.Addr, bool) { return 0, false }

// object is a typed thing at an offset of a source.
type object struct {
	source source
	offset int64
}

func (o object) atOffset(offset int64) object { return object{o.source, o.offset + offset} }

func (o object) read(size int64) ([]byte, error) { return o.source.read(o.offset, size) }

func (o object) address() (evidence.Addr, bool) { return o.source.address(o.offset) }
